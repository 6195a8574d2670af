"""Reduces oha's rows (SQLite) to distinct latencies with counts, and slices.

oha writes one row per response into the table `oha`: `start` and `end` in seconds since the load
began, `duration` (with --latency-correction from the time when the request was due), `status` and
`len_bytes`. SQLite groups the rows, so that millions of them need seconds and little memory.
A request without a response has no row: only oha's report contains it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..errors import TrialFailed
from .request_counter import RequestCounter

#: The percentiles of oha's report.
PERCENTILES = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
#: oha's message for a request that was in progress at the end of the load.
CUT_OFF = "aborted due to deadline"
_GROUPS = (
    "SELECT min(start), max(end), CAST(round(duration * 1e6) AS INTEGER) AS us, status, "
    "len_bytes, count(*) FROM oha "
    # Whole seconds before and after the warm-up: no division cuts off below 0.
    "GROUP BY start >= :warmup, CAST(end - :warmup + :up AS INTEGER), us, status, len_bytes"
)


def read(
    _folder: Path, out: Path, rows: Path, warmup_s: float, good_statuses: Collection[int] = (200,)
) -> dict[str, Any]:
    """Read the rows; TrialFailed "output_lost" if the report is valid and the rows are not."""
    json.loads(out.read_bytes())
    if not rows.exists():
        raise TrialFailed("output_lost", "the load tool left no rows; is the disk full?")
    try:
        return _summarise_rows(rows, warmup_s, good_statuses)
    except sqlite3.Error as error:
        raise TrialFailed("output_lost", f"the load tool's rows cannot be read: {error}") from error


def _summarise_rows(rows: Path, warmup_s: float, good_statuses: Collection[int]) -> dict[str, Any]:
    counter = RequestCounter(warmup_s)
    parameters = {"warmup": warmup_s, "up": int(warmup_s) + 1}
    with contextlib.closing(sqlite3.connect(f"file:{rows}?mode=ro", uri=True)) as database:
        for start_s, end_s, us, status, size, count in database.execute(_GROUPS, parameters):
            good = status in good_statuses
            counter.add(start_s, end_s, us, good, status, size, count=count)
        return counter.rows_json(percentiles=_compute_percentiles(database))


def _compute_percentiles(rows: sqlite3.Connection) -> dict[str, float]:
    """Return the percentiles of all rows, by oha's rule: sorted[floor(p/100 · n)]."""
    # Python sorts numbers faster than SQLite sorts rows.
    durations = sorted(row[0] for row in rows.execute("SELECT duration FROM oha"))
    n = len(durations)
    return {
        f"p{percentile:g}": durations[min(n - 1, int(percentile / 100 * n))]
        for percentile in PERCENTILES
        if n
    }


def count_errors(out: Path) -> int:
    """Return the number of requests of the whole load without a response, from oha's report.

    Requests in progress at the end of the load are not errors.
    """
    tool_metrics: dict[str, int] = json.loads(out.read_bytes()).get("errorDistribution") or {}
    return sum(count for text, count in tool_metrics.items() if text != CUT_OFF)
