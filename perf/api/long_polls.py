"""The effect of many clients that wait for a run (`?wait=60`) on an interactive user."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice

from perf.api.dataset import Dataset
from perf.scale.http_clients import Connection, Request

WAIT_S = 60
#: Interval at which one of 500 clients times out and asks again.
AGAIN_S = WAIT_S / 500
#: The limits of a process must allow this: all clients have one token.
LIMITS = {f"PITWALL_WAITS_A_{owner}": "1000" for owner in ("TOKEN", "TEAM", "PROCESS")}


class WaitingError(Exception):
    """The server answered a client that should wait."""


class Crowd:
    """Clients that wait for the queued run; one of them asks again every AGAIN_S."""

    def __init__(self, port: int, dataset: Dataset, size: int) -> None:
        self._port, self._size = port, size
        self._request = (
            f"GET /api/v1/runs/{dataset.queued}?wait={WAIT_S} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {dataset.token}\r\n\r\n"
        ).encode()
        self._clients: list[socket.socket] = []
        self._answers = selectors.DefaultSelector()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._go_on)

    def start(self) -> None:
        """Return when the server has handled all clients: it parks them in order."""
        for _ in range(self._size):
            self._join()
        probe = Connection(self._port)
        probe.ask(Request(path="/healthz"))
        probe.close()
        time.sleep(2)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        answered = self._answers.select(0)
        for client in self._clients:
            client.close()
        self._answers.close()
        if answered:
            raise WaitingError(f"{len(answered)} of {self._size} clients did not wait")

    def _join(self) -> None:
        client = socket.create_connection(("127.0.0.1", self._port), timeout=WAIT_S)
        client.sendall(self._request)
        self._clients.append(client)
        self._answers.register(client, selectors.EVENT_READ)

    def _go_on(self) -> None:
        while not self._end.wait(AGAIN_S):
            first = self._clients.pop(0)
            self._answers.unregister(first)
            first.close()
            self._join()


@contextmanager
def waiting(port: int, dataset: Dataset, size: int) -> Iterator[None]:
    crowd = Crowd(port, dataset, size)
    crowd.start()
    try:
        yield
    finally:
        crowd.stop()


def page_seconds(port: int, dataset: Dataset, count: int) -> list[float]:
    """Return the seconds of two pages (list of runs, one run) in a logged-in user's browser."""
    headers = {"Cookie": f"sessionid={dataset.session}"}
    paths = cycle(["/runs/", f"/runs/{dataset.finished}/"])
    connection, seconds = Connection(port), []
    for path in islice(paths, count):
        began = time.perf_counter()
        connection.ask(Request(path=path, headers=headers))
        seconds.append(time.perf_counter() - began)
    connection.close()
    return seconds
