"""The whole latency distribution of wrk, from the Lua of its load, without wrk's corrections.

The report is {"requests", "duration_us", "bytes", "connections", "errors", "value_us", "count"}.
wrk does not report which responses were bad, only how many.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..errors import TrialFailed
from ..files import write_json
from .request_counter import RequestCounter

#: The errors of wrk except those by status, with their common class and message.
CLASSES = {
    "connect": ("connect", "connecting failed"),
    "read": ("broken", "reading a response failed"),
    "write": ("broken", "writing a request failed"),
    "timeout": ("timeout", "the response came after the timeout"),
}


#: The maximum of samples to remove; more would take minutes.
MAX_ADDED = 10_000_000


def read(
    _folder: Path, out: Path, _rows: Path, warmup_s: float, _good_statuses: Collection[int] = ()
) -> dict[str, Any]:
    """Move the distribution to rows.json; the rest stays in `out`. FileNotFoundError without it."""
    try:
        report = json.loads(out.read_bytes())
    except (ValueError, RecursionError) as error:
        raise TrialFailed(
            "tool_failed", f"wrk's report is incomplete: {error}; is the disk full?"
        ) from error
    added_to = dict(zip(report.pop("value_us"), report.pop("count")))
    counts = remove_corrections(added_to, compute_interval_us(report))
    rows = _build_counter(report, counts, warmup_s)
    report["added"] = sum(added_to.values()) - sum(counts.values())
    write_json(out, report)
    return rows


def _build_counter(
    report: dict[str, Any], counts: dict[int, int], warmup_s: float
) -> dict[str, Any]:
    counter = RequestCounter(warmup_s)
    # If some responses are bad, none can be counted as good.
    good = not report["errors"]["status"]
    for us, count in counts.items():
        counter.add(None, None, us, good, count=count)
    counter.reports_errors()
    for name, (kind, text) in CLASSES.items():
        if report["errors"][name]:
            counter.fail(kind, text, report["errors"][name])
    return counter.rows_json()


def compute_interval_us(report: dict[str, Any]) -> int:
    """Return the mean time between two responses of a connection, by wrk's rule; 0 without any."""
    requests = report["requests"] // report["connections"]
    return int(report["duration_us"] // requests) if requests else 0


def remove_corrections(counts: dict[int, int], interval: int) -> dict[int, int]:
    """Return the measured counts, without the corrections of `stats_correct` (wrk 4.1.0,
    src/stats.c).

    For each value of at least two intervals, wrk adds samples that are one, two, … intervals
    lower, while they are above one interval. So additions to a value come only from larger values:
    processed from the largest down, each count is the original one.
    """
    left = dict(counts)
    if interval <= 0:
        return left
    steps = 0
    for us in sorted(counts, reverse=True):
        if us < 2 * interval:
            break
        steps += us // interval if left[us] else 0
        if steps > MAX_ADDED:
            raise ValueError(f"more than {MAX_ADDED:,} samples cannot be removed")
        for below in range(us - interval, interval, -interval) if left[us] else ():
            left[below] = left.get(below, 0) - left[us]
    if any(count < 0 for count in left.values()):
        # Not a distribution of wrk; the check of the number of requests will fail, too.
        return counts
    return {us: count for us, count in left.items() if count}
