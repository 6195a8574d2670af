"""Requests of the agent itself while a load runs, so few that they do not disturb it.

A load tool counts answers, but does not compare them. The agent sends the requests of the trial's
checks in between, and the answers are compared with those before and after the load.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Optional

from ..http.answers import AnswerLog, Phase
from ..http.connection import Connection
from ..http.messages import Response, ResponseError
from ..http.sending import Headers, Target, build_faulty, connect, send_on
from ..step.plan import OWN_CHECK, Check

#: A second request per second is for the checks of the definition. The samples of the monitor are
#: taken in between, so that they do not count the agent's connection.
FIRST_S, PERIOD_S = 0.4, 1.0
#: The agent sends at most one request for so many of the load.
SPARSENESS = 100.0
#: A server that ends the connection after its answer does so within this time.
_CLOSING_S = 0.01
#: How long to wait for a request that is under way at the end of the load.
_ENDING_S = 1.0
_ID_HEADER = "x-request-id"


class AnswerSampler:
    """Samples answers in a thread, from `begin` to `end` or to the end of the context.

    `rate`: requests per second of an open load, None of a closed one with `at_once` requests.
    """

    def __init__(
        self,
        target: Target,
        checks: Sequence[Check],
        log: AnswerLog,
        load: int,
        rate: Optional[float],
        at_once: int,
    ) -> None:
        self.sent = 0
        self.unanswered = 0
        self._target = target
        self._log = log
        self._phase = Phase("during", load)
        self._turns = _take_turns(checks)
        self._period_s = _choose_period_s(checks)
        self._rate = rate
        self._at_once = at_once
        self._ended = threading.Event()
        self._connection: Optional[Connection] = None
        self._thread: Optional[threading.Thread] = None
        self._is_empty = not checks

    def begin(self) -> None:
        """Start. Call it when the load tool runs, because starting a process needs one thread."""
        if self._thread is None and not self._is_empty:
            self._thread = threading.Thread(target=self._run, name="answers", daemon=True)
            self._thread.start()

    def __enter__(self) -> AnswerSampler:
        return self

    def __exit__(
        self,
        _kind: Optional[type[BaseException]],
        _error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop; an answer that is still missing is not counted."""
        self._ended.set()
        connection = self._connection
        if connection is not None:
            connection.abort()
        if self._thread is not None:
            self._thread.join(_ENDING_S)

    def as_json(self) -> dict[str, Any]:
        return {"sent": self.sent, "unanswered": self.unanswered}

    def _run(self) -> None:
        began = time.monotonic()
        due = began + FIRST_S
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            took_s = self._sample(next(self._turns), time.monotonic() - began)
            due = max(due + self._period_s, time.monotonic() + self._find_pause_s(took_s))

    def _find_pause_s(self, took_s: float) -> float:
        """Return how long SPARSENESS requests of the load take, if each takes `took_s`."""
        each_s = 1 / self._rate if self._rate else took_s / self._at_once
        return SPARSENESS * each_s

    def _sample(self, check: Check, at_s: float) -> float:
        """Send one request and add its answer; return how long it took."""
        began = time.monotonic()
        request_id, extra = build_request_id(check)
        try:
            response: Optional[Response] = self._send(check, extra)
        except OSError:
            response = None
        took_s = time.monotonic() - began
        if not self._ended.is_set():
            self.sent += 1
            if response is None or _is_missing(response, check):
                self.unanswered += 1
            else:
                at_s = round(at_s, 3)
                self._log.add(self._phase, check, response, request_id=request_id, at_s=at_s)
        return took_s

    def _send(self, check: Check, extra: Headers) -> Response:
        try:
            connection = connect(self._target, check)
        except ResponseError as fault:
            return build_faulty(fault)
        self._connection = connection
        try:
            response = send_on(connection, self._target, check, extra)
            if response.closes is False and connection.ends_within(_CLOSING_S):
                return response._replace(closes=True)
            return response
        finally:
            self._connection = None
            connection.close()


def build_request_id(check: Check) -> tuple[Optional[str], Headers]:
    """Return a unique text, and the header with it; none if the check must not have it.

    A server that returns it shows that the answer belongs to the request.
    """
    if check.name != OWN_CHECK or any(name.lower() == _ID_HEADER for name, _ in check.headers):
        return None, ()
    request_id = os.urandom(16).hex()
    return request_id, ((_ID_HEADER, request_id),)


def _is_missing(response: Response, check: Check) -> bool:
    """Return whether nothing of the answer was received, such as after a timeout over HTTP/2."""
    return response.status is None and response.protocol in (None, check.protocol)


def _take_turns(checks: Sequence[Check]) -> Iterator[Check]:
    """Yield the load's own request every other time, in between the others in their order."""
    own = [check for check in checks if check.name == OWN_CHECK]
    others = [check for check in checks if check.name != OWN_CHECK]
    pairs = [pair for other in others for pair in (*own, other)]
    return itertools.cycle(pairs or own)


def _choose_period_s(checks: Sequence[Check]) -> float:
    names = {check.name == OWN_CHECK for check in checks}
    return PERIOD_S / max(1, len(names))
