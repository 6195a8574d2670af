"""Reduces k6's CSV rows; its report stays, with the responses by status added.

k6 writes one row per metric. For each HTTP request there is http_req_duration (in ms, from the
connection to the whole response) after the time for getting the connection; for each gRPC call,
grpc_req_duration. Their timestamp is the end of the request. The metrics body_bytes and no_answer
come from our script (k6_load.js) and belong to the last request of their VU. With a rate k6 starts
requests by a schedule, and latency counts from when a request was due. It skips requests that are
due while all VUs are busy: these are errors of the class `not_sent`.
"""

from __future__ import annotations

import csv
import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..errors import TrialFailed
from ..files import write_json
from .grpc_status import classify_failure
from .request_counter import RequestCounter
from .schedule import Schedule, compute_schedule

_NO_ANSWER = -1
_SECOND_NS = 1_000_000_000
_PROTOCOLS = {"HTTP/1.0": "h1", "HTTP/1.1": "h1", "HTTP/2.0": "h2"}
_COLUMNS = ("metric_name", "timestamp", "metric_value")
_SKIPPED_TEXT = "all connections were busy when the request was due"
#: k6's error codes: below the number → class; those below the first one by their message.
_CLASSES = (
    (1050, "timeout"), (1100, "dns"), (1200, "broken"), (1211, "timeout"), (1212, "refused"),
    (1213, "broken"), (1300, "tls"), (1600, "h2_protocol"), (1700, "other"),
)  # fmt: skip


def read(
    _folder: Path, out: Path, raw: Path, warmup_s: float, good_statuses: Collection[int] = (200,)
) -> dict[str, Any]:
    """Read the rows; ValueError or LookupError for invalid rows, TrialFailed without any."""
    for path, name in ((out, "report"), (raw, "rows")):
        if not path.exists():
            raise TrialFailed("output_lost", f"k6 left no {name}; is the disk full?")
    report = json.loads(out.read_bytes())
    load = report["asked"]
    rows = _Rows()
    with open(raw, encoding="utf-8", newline="") as file:
        try:
            rows.read(csv.reader(file))
        except csv.Error as error:
            raise ValueError(f"k6's rows are no CSV: {error}") from error
    write_json(out, {**report, "answered": rows.by_status()})
    counter = RequestCounter(warmup_s)
    counter.reports_errors()
    for (kind, text), count in rows.failures.items():
        counter.fail(kind, text, count)
    stop_ns = _parse_duration_ns(load)
    for request in rows.requests(load["rate"]):
        if request.start_ns < stop_ns:
            _add(counter, request, good_statuses)
    return counter.rows_json(
        n=rows.answered,
        percentiles=rows.extremes(),
        protocol=rows.protocol,
        corrected=load["rate"] is not None,
    )


class _Request(NamedTuple):
    """A request with a response; times in nanoseconds since the load began."""

    start_ns: int
    end_ns: int
    status: int
    size: Optional[int]


def _add(counter: RequestCounter, request: _Request, good_statuses: Collection[int]) -> None:
    good = request.status in good_statuses
    latency_us = (request.end_ns - request.start_ns) / 1e3
    counter.add(
        request.start_ns / 1e9, request.end_ns / 1e9, latency_us, good, request.status, request.size
    )


def _parse_duration_ns(load: Mapping[str, Any]) -> float:
    """Return the value of `6500ms`, as our adapter writes it; infinite without a duration."""
    text = load.get("duration")
    return math.inf if text is None else int(text[: -len("ms")]) * 1_000_000


class _Rows:
    """Stores 36 bytes for each request."""

    def __init__(self) -> None:
        self.failures: dict[tuple[str, str], int] = {}
        self.is_grpc = False
        self._end_ns = array("q")
        self._latency_ns = array("q")
        self._status = array("i")
        self._size = array("q")
        self._dropped_ns = array("q")
        self._shortest: Optional[float] = None
        self._longest = 0.0
        self._protocols: set[str] = set()
        self._place: dict[str, int] = {}
        #: The request of a VU's iteration, and the messages of those without one.
        self._of_vu: dict[str, int] = {}
        self._unasked: dict[str, str] = {}

    def read(self, rows: Iterator[list[str]]) -> None:
        head = next(rows, [])
        if tuple(head[:3]) != _COLUMNS:
            raise ValueError(f"no rows of k6: they begin with {head[:3]}")
        self._place = {name: number for number, name in enumerate(head)}
        add: Mapping[str, Callable[[Sequence[str]], None]] = {
            "http_req_duration": self._http,
            "http_req_blocked": self._blocked,
            "grpc_req_duration": self._grpc,
            "body_bytes": self._body,
            "no_answer": self._no_answer,
            "iteration_duration": self._iteration,
            "dropped_iterations": self._dropped,
        }
        for row in rows:
            act = add.get(row[0])
            if act is not None:
                act(row)

    def _http(self, row: Sequence[str]) -> None:
        status = int(self._cell(row, "status"))
        protocol = self._cell(row, "proto")
        if status == 0:
            status = _NO_ANSWER
            code, text = self._cell(row, "error_code"), self._cell(row, "error")
            self._fail(_classify_status(int(code or 0), text), text)
        elif protocol:
            self._protocols.add(_PROTOCOLS.get(protocol, protocol))
        self._begin(row, status)

    def _grpc(self, row: Sequence[str]) -> None:
        self.is_grpc = True
        self._begin(row, int(self._cell(row, "status")))

    def _begin(self, row: Sequence[str], status: int) -> None:
        self._of_vu[row[-1]] = len(self._end_ns)
        ms = float(row[2])
        self._shortest = ms if self._shortest is None else min(ms, self._shortest)
        self._longest = max(ms, self._longest)
        self._end_ns.append(int(row[1]))
        self._latency_ns.append(round(ms * 1e6))
        self._status.append(status)
        self._size.append(-1)

    def _blocked(self, row: Sequence[str]) -> None:
        self._latency_ns[self._of_vu[row[-1]]] += round(float(row[2]) * 1e6)

    def _body(self, row: Sequence[str]) -> None:
        self._size[self._of_vu[row[-1]]] = int(float(row[2]))

    def _no_answer(self, row: Sequence[str]) -> None:
        """An error from the script: of a request with a row, or of one without."""
        text = self._cell(row, "extra_tags").partition("text=")[2]
        request = self._of_vu.get(row[-1])
        if request is None:
            self._unasked[row[-1]] = text
        elif self._status[request] >= 0:
            kind = classify_failure(self._status[request], text)
            if kind is not None:
                self._status[request] = _NO_ANSWER
                self._fail(kind, text)

    def _iteration(self, row: Sequence[str]) -> None:
        self._of_vu.pop(row[-1], None)
        text = self._unasked.pop(row[-1], None)
        if text is not None:
            self._fail(classify_failure(14, text) or "other", text)
            self._dropped_ns.append(int(row[1]) - round(float(row[2]) * 1e6))

    def _dropped(self, row: Sequence[str]) -> None:
        for _ in range(int(float(row[2]))):
            self._dropped_ns.append(int(row[1]))
            self._fail("not_sent", _SKIPPED_TEXT)

    def _cell(self, row: Sequence[str], name: str) -> str:
        return row[self._place[name]]

    def _fail(self, kind: str, text: str) -> None:
        key = kind, text[:300]
        if key not in self.failures and len(self.failures) >= 1000:
            key = kind, ""
        self.failures[key] = self.failures.get(key, 0) + 1

    @property
    def answered(self) -> int:
        return len(self._status) - self._status.count(_NO_ANSWER)

    @property
    def protocol(self) -> Optional[str]:
        """The protocols of all requests; several are joined, which matches no requested one."""
        return "grpc" if self.is_grpc else ", ".join(sorted(self._protocols)) or None

    def extremes(self) -> dict[str, float]:
        """Return the minimum and maximum of k6's durations, in seconds."""
        if self._shortest is None:
            return {}
        return {"p0": self._shortest / 1e3, "p100": self._longest / 1e3}

    def by_status(self) -> dict[str, int]:
        """Return the number of responses by status."""
        counts = Counter(self._status)
        return {str(status): counts[status] for status in sorted(counts) if status != _NO_ANSWER}

    def requests(self, rate: Optional[float]) -> Iterator[_Request]:
        """The requests with a response."""
        starts = array("q", (e - ns for e, ns in zip(self._end_ns, self._latency_ns)))
        if not starts:
            return
        begin, due = self._schedule(starts, rate)
        for start, end, status, size in zip(due, self._end_ns, self._status, self._size):
            if status != _NO_ANSWER:
                yield _Request(start - begin, end - begin, status, None if size < 0 else size)

    def _schedule(self, starts: array[int], rate: Optional[float]) -> Schedule:
        if rate is None:
            return Schedule(min(starts), starts)
        # The interval as k6 computes it, from a whole number of requests in 1,000 s.
        return compute_schedule(starts, self._dropped_ns, 1000 * _SECOND_NS // round(rate * 1000))


def _classify_status(code: int, text: str) -> str:
    if "too many open files" in text:
        return "client_fd_limit"
    if code < _CLASSES[0][0]:
        return classify_failure(14, text) or "other"
    return [kind for least, kind in _CLASSES if code >= least][-1]
