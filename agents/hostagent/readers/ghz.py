"""Reduces ghz's JSON report: its details become rows.json, the rest is the report.

ghz writes one detail per call, for the first million calls: `timestamp` is its end, `latency` is in
nanoseconds from its start by gRPC. With a rate (and --async) ghz starts calls by a schedule and
catches up with it. Then latency counts from when the call was due, and the load begins when the
first call was due. Without a rate the load begins with the first call.
"""

from __future__ import annotations

import calendar
import functools
import math
import time
from array import array
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Optional

from ..errors import TrialFailed
from ..files import write_json
from .grpc_status import classify_failure, get_code_number
from .json_stream import read_object
from .request_counter import RequestCounter
from .schedule import Schedule, compute_schedule

#: The percentiles of ghz's report, of successful calls.
PERCENTILES = (10, 25, 50, 75, 90, 95, 99)
_NO_ANSWER = -1
_SECOND_NS = 1_000_000_000


def read(
    _folder: Path, out: Path, raw: Path, warmup_s: float, _good_statuses: Collection[int] = ()
) -> dict[str, Any]:
    """Read the report; ValueError for an invalid one, TrialFailed if it is missing or cut off."""
    if not raw.exists():
        raise TrialFailed("output_lost", "ghz left no report; is the disk full?")
    calls = _Calls()
    report = read_object(raw, "details", calls.add)
    report.pop("details", None)
    counter = RequestCounter(warmup_s)
    counter.reports_errors()
    _check_complete(report, calls)
    for kind, text, count in iterate_failures(report["errorDistribution"]):
        counter.fail(kind, text, count)
    rate = report["options"].get("rps") or None
    # ghz may make a few calls after the end of its duration before it stops, and it waits
    # for one interval before the first.
    interval_ns = _compute_interval_ns(rate)
    stop_ns = (report["options"].get("duration") or math.inf) - (interval_ns or 0)
    for start_ns, end_ns, code in calls.timed(interval_ns):
        if start_ns <= stop_ns:
            latency_us = (end_ns - start_ns) / 1e3
            counter.add(start_ns / 1e9, end_ns / 1e9, latency_us, code == 0, code)
    write_json(out, report)
    return counter.rows_json(
        n=calls.answered,
        percentiles=_compute_percentiles(sorted(calls.good_latencies())),
        protocol="grpc",
        corrected=rate is not None,
    )


def iterate_failures(distribution: Mapping[str, int]) -> Iterator[tuple[str, str, int]]:
    """(class, text, calls) of all calls without a response, from ghz's `errorDistribution`."""
    for text, count in distribution.items():
        kind = classify_failure(find_code(text), text)
        if kind is not None:
            yield kind, text, count


def find_code(text: str) -> Optional[int]:
    """Return the code in `rpc error: code = NotFound desc = …`."""
    head, _, rest = text.partition("code = ")
    return get_code_number(rest.partition(" ")[0]) if head == "rpc error: " else None


def _compute_interval_ns(rate: Optional[int]) -> Optional[int]:
    """Return the interval as ghz's own pacer computes it."""
    return None if rate is None else _SECOND_NS // rate


def _check_complete(report: Mapping[str, Any], calls: _Calls) -> None:
    failed = sum(count for _, _, count in iterate_failures(report["errorDistribution"]))
    answered = report["count"] - failed
    if calls.answered < answered:
        raise TrialFailed(
            "tool_failed",
            f"ghz stored only the first {calls.answered:,} of {answered:,} calls: make the "
            "load shorter or give it a lower rate",
        )


class _Calls:
    """Stores 17 bytes for each detail."""

    def __init__(self) -> None:
        self._end_ns = array("q")
        self._latency_ns = array("q")
        self._code = array("b")

    def add(self, detail: Mapping[str, Any]) -> None:
        self._end_ns.append(_parse_epoch_ns(detail["timestamp"]))
        self._latency_ns.append(detail["latency"])
        self._code.append(_classify_outcome(detail["status"], detail["error"]))

    @property
    def answered(self) -> int:
        return len(self._code) - self._code.count(_NO_ANSWER)

    def good_latencies(self) -> Iterator[int]:
        return (ns for ns, code in zip(self._latency_ns, self._code) if code == 0)

    def timed(self, interval_ns: Optional[int]) -> Iterator[tuple[int, int, int]]:
        """(start, end, code) of the calls with a response, in nanoseconds since the load began."""
        starts = array("q", (e - ns for e, ns in zip(self._end_ns, self._latency_ns)))
        if not starts:
            return
        schedule = Schedule(min(starts), starts)
        if interval_ns is not None:
            schedule = compute_schedule(starts, (), interval_ns)
        zero = schedule.begin_ns
        for start_ns, end_ns, code in zip(schedule.due_ns, self._end_ns, self._code):
            if code != _NO_ANSWER:
                yield start_ns - zero, end_ns - zero, code


@functools.lru_cache(maxsize=4096)
def _classify_outcome(status: str, error: str) -> int:
    code = get_code_number(status)
    return _NO_ANSWER if code is None or (code and classify_failure(code, error)) else code


def _parse_epoch_ns(text: str) -> int:
    """Return nanoseconds of `2026-11-21T10:35:00.123456789+01:00`; fraction optional, Z allowed."""
    zone = text[-1:] if text.endswith("Z") else text[-6:]
    fraction = text[20 : -len(zone)]
    return _parse_second(text[:19], zone) * _SECOND_NS + int(fraction.ljust(9, "0"))


@functools.lru_cache(maxsize=64)
def _parse_second(text: str, zone: str) -> int:
    seconds = calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    if zone == "Z":
        return seconds
    offset = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
    return seconds - offset if zone[0] == "+" else seconds + offset


def _compute_percentiles(ordered_ns: list[int]) -> dict[str, float]:
    """Return the percentiles in seconds, by ghz's rule."""
    percentiles = {}
    for percentile in PERCENTILES if ordered_ns else ():
        rank = percentile / 100 * len(ordered_ns)
        place = int(rank) - 1 if rank == int(rank) else int(rank)
        whole, part = divmod(ordered_ns[max(0, place)], _SECOND_NS)
        percentiles[f"p{percentile}"] = whole + part / 1e9
    return percentiles
