"""wrk's whole distribution, as the Lua of its load wrote it, without what wrk added to it.

The report is {"requests", "duration_us", "bytes", "connections", "errors", "value_us", "count"}.
wrk does not tell which answers were bad, only how many.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import TrialFailed
from ..files import write_json
from .request_counter import RequestCounter

#: wrk's errors that are not of an answer's status, and what they are called everywhere.
CLASSES = {
    "connect": ("connect", "connecting failed"),
    "read": ("broken", "reading an answer failed"),
    "write": ("broken", "writing a request failed"),
    "timeout": ("timeout", "the answer came after the time-out"),
}


#: Samples that wrk can have added; more would keep the host busy for minutes.
MAX_ADDED = 10_000_000


def read(_folder: Path, out: Path, _rows: Path, warmup_s: float) -> dict[str, Any]:
    """The distribution goes to rows.json, all else stays in `out`. FileNotFoundError without it."""
    try:
        report = json.loads(out.read_bytes())
    except (ValueError, RecursionError) as error:
        raise TrialFailed(
            "tool_failed", f"wrk's report is not whole: {error}; is the disk full?"
        ) from error
    added_to = dict(zip(report.pop("value_us"), report.pop("count")))
    counts = remove_corrections(added_to, interval_us(report))
    rows = _counter(report, counts, warmup_s)
    report["added"] = sum(added_to.values()) - sum(counts.values())
    write_json(out, report)
    return rows


def _counter(report: dict[str, Any], counts: dict[int, int], warmup_s: float) -> dict[str, Any]:
    counter = RequestCounter(warmup_s)
    # With some bad ones among them, none can be called good.
    good = not report["errors"]["status"]
    for us, count in counts.items():
        counter.add(None, None, us, good, count=count)
    counter.reports_errors()
    for name, (kind, text) in CLASSES.items():
        if report["errors"][name]:
            counter.fail(kind, text, report["errors"][name])
    return counter.rows_json()


def interval_us(report: dict[str, Any]) -> int:
    """Mean time between two answers on a connection, as wrk computes it; 0 where it has none."""
    each = report["requests"] // report["connections"]
    return int(report["duration_us"] // each) if each else 0


def remove_corrections(counts: dict[int, int], interval: int) -> dict[int, int]:
    """What wrk measured, from what it made of it in `stats_correct` (4.1.0, src/stats.c).

    From the smallest value of at least two intervals on, wrk adds a sample one, two, … intervals
    below each, as long as that is more than one interval. What it adds to a value comes from
    larger ones only: taken back from the largest down, each count is the original one when its
    turn comes.
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
            raise ValueError(f"more than {MAX_ADDED:,} samples cannot be taken back")
        for below in range(us - interval, interval, -interval) if left[us] else ():
            left[below] = left.get(below, 0) - left[us]
    if any(count < 0 for count in left.values()):
        # Not what this was made for; the number of requests will not fit either.
        return counts
    return {us: count for us, count in left.items() if count}
