"""HTTP clients on persistent loopback connections, with the time of each request at the client."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

TIMEOUT_S = 120


class AnswerError(Exception):
    """Another status than the expected one was returned; the text has the details."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request; `body` makes it a POST. `status` is the expected one."""

    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True, kw_only=True)
class RequestTimes:
    """Seconds of each request, of all together, and the bytes of the last answer on the wire."""

    seconds: list[float] = field(default_factory=list)
    elapsed_s: float = 0.0
    wire_bytes: int = 0
    last: bytes = b""


class Connection:
    """One persistent connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    def ask(self, request: Request) -> bytes:
        """Return the body as received. Raise AnswerError for an unexpected status."""
        return self.answer(request).body

    def answer(self, request: Request) -> Answer:
        """Return the same, with the headers."""
        method = "GET" if request.body is None else "POST"
        self._http.request(method, request.path, request.body, dict(request.headers))
        answer = self._http.getresponse()
        body = answer.read()
        if answer.status != request.status:
            raise AnswerError(f"{method} {request.path}: {answer.status} {body[:500]!r}")
        return Answer(headers=dict(answer.getheaders()), body=body)

    def close(self) -> None:
        self._http.close()


def ask_many(port: int, requests: Sequence[Request], *, clients: int) -> RequestTimes:
    """Send all these requests by several clients at once, each on its connection, in turns."""
    times = RequestTimes()
    lock = threading.Lock()

    def work(connection: Connection, mine: Sequence[Request]) -> None:
        seconds = []
        body = b""
        for request in mine:
            began = time.perf_counter()
            body = connection.ask(request)
            seconds.append(time.perf_counter() - began)
        with lock:
            times.seconds += seconds
            times.wire_bytes, times.last = len(body), body

    def job(mine: Sequence[Request]) -> Callable[[Connection], None]:
        return lambda connection: work(connection, mine)

    shares = [requests[client::clients] for client in range(clients)]
    times.elapsed_s = run_in_parallel(port, [job(share) for share in shares if share])
    return times


def run_in_parallel(port: int, works: Sequence[Callable[[Connection], None]]) -> float:
    """Run each in a thread with its own connection.

    Return the total seconds; raise the first error.
    """
    connections = [Connection(port) for _ in works]
    faults: list[BaseException] = []

    def guarded(work: Callable[[Connection], None], connection: Connection) -> None:
        try:
            work(connection)
        except BaseException as error:
            faults.append(error)

    threads = [
        threading.Thread(target=guarded, args=pair) for pair in zip(works, connections, strict=True)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed_s = time.perf_counter() - began
    for connection in connections:
        connection.close()
    if faults:
        raise faults[0]
    return elapsed_s
