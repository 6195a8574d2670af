"""oha's rows (SQLite) reduced to what is kept: distinct latencies with counts, and slices.

oha writes one row an answered request into the table `oha`: `start` and `end` in seconds since the
load began, `duration` (with --latency-correction from the time when the request was due), `status`
and `len_bytes`. SQLite does the grouping, so that millions of rows cost seconds and little memory.
What was not answered has no row: only oha's report tells of it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from ..errors import TrialFailed
from .request_counter import RequestCounter

#: oha's own percentiles, by its own names.
PERCENTILES = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
#: What it calls a request that was under way when its time was up.
CUT_OFF = "aborted due to deadline"
_GROUPS = (
    "SELECT min(start), max(end), CAST(round(duration * 1e6) AS INTEGER) AS us, status, "
    "len_bytes, count(*) FROM oha "
    # Whole seconds before and after the warm-up: no division cuts off below 0.
    "GROUP BY start >= :warmup, CAST(end - :warmup + :up AS INTEGER), us, status, len_bytes"
)


def read(_folder: Path, out: Path, rows: Path, warmup_s: float) -> dict[str, Any]:
    """TrialFailed "output_lost" where the report is well and the rows are not."""
    json.loads(out.read_bytes())
    if not rows.exists():
        raise TrialFailed("output_lost", "the load tool left no rows; is the disk full?")
    try:
        return _count_rows(rows, warmup_s)
    except sqlite3.Error as error:
        raise TrialFailed("output_lost", f"the load tool's rows cannot be read: {error}") from error


def _count_rows(rows: Path, warmup_s: float) -> dict[str, Any]:
    counter = RequestCounter(warmup_s)
    words = {"warmup": warmup_s, "up": int(warmup_s) + 1}
    with contextlib.closing(sqlite3.connect(f"file:{rows}?mode=ro", uri=True)) as database:
        for start_s, end_s, us, status, size, count in database.execute(_GROUPS, words):
            good = 200 <= status < 400
            counter.add(start_s, end_s, us, good, status, size, count=count)
        return counter.rows_json(percentiles=_percentiles(database))


def _percentiles(rows: sqlite3.Connection) -> dict[str, float]:
    """Of all rows, by oha's rule: sorted[floor(p/100 · n)]."""
    durations = [row[0] for row in rows.execute("SELECT duration FROM oha ORDER BY duration")]
    n = len(durations)
    return {
        f"p{percentile:g}": durations[min(n - 1, int(percentile / 100 * n))]
        for percentile in PERCENTILES
        if n
    }


def errors(out: Path) -> int:
    """Requests of the whole load that got no answer, by oha's report.

    Those that were under way when time was up are none.
    """
    tool_metrics: dict[str, int] = json.loads(out.read_bytes()).get("errorDistribution") or {}
    return sum(count for text, count in tool_metrics.items() if text != CUT_OFF)
