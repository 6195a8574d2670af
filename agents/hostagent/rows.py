"""oha's rows (SQLite) reduced to what is kept: distinct latencies with counts, and slices.

oha writes one row an answered request into the table `oha`: `start` and `end` in seconds since the
load began, `duration` (with --latency-correction from the time when the request was due), `status`
and `len_bytes`. SQLite does the grouping, so that millions of rows cost seconds and little memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from .protocol import SCHEMA

#: oha's own percentiles, by its own names.
PERCENTILES = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
_OK = "status >= 200 AND status < 400"


def reduce_rows(path: Path, warmup_s: float) -> dict[str, Any]:
    """rows.json for the database at `path`: see protocol.py. sqlite3.Error if it is none."""
    rows = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        rows.execute("CREATE TEMP TABLE counted AS " + _counted(), (warmup_s,))
        return {
            "schema": SCHEMA,
            "all": _all(rows),
            "window": {"start_s": warmup_s, "end_s": _one(rows, "SELECT max(end) FROM counted")},
            "ok": _distribution(rows, _OK),
            "other": _distribution(rows, f"NOT ({_OK})"),
            "by_status": {
                str(status): count
                for status, count in rows.execute(
                    "SELECT status, count(*) FROM counted GROUP BY status ORDER BY status"
                )
            },
            "bytes": _one(rows, "SELECT coalesce(sum(len_bytes), 0) FROM counted"),
            "slices": _slices(rows, warmup_s),
        }
    finally:
        rows.close()


def _counted() -> str:
    return (
        "SELECT end, status, len_bytes, CAST(round(duration * 1e6) AS INTEGER) AS us "
        "FROM oha WHERE start >= ?"
    )


def _one(rows: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> Any:
    found = rows.execute(query, values).fetchone()
    return found[0] if found else None


def _all(rows: sqlite3.Connection) -> dict[str, Any]:
    """All rows and oha's percentiles of them, by oha's rule: sorted[floor(p/100 · n)]."""
    durations = [row[0] for row in rows.execute("SELECT duration FROM oha ORDER BY duration")]
    n = len(durations)
    percentiles = {
        f"p{percentile:g}": durations[min(n - 1, int(percentile / 100 * n))]
        for percentile in PERCENTILES
        if n
    }
    return {"n": n, "percentiles": percentiles}


def _distribution(rows: sqlite3.Connection, condition: str) -> dict[str, list[int]]:
    pairs = rows.execute(
        f"SELECT us, count(*) FROM counted WHERE {condition} GROUP BY us ORDER BY us"
    ).fetchall()
    return {"value_us": [us for us, _ in pairs], "count": [count for _, count in pairs]}


def _slices(rows: sqlite3.Connection, warmup_s: float) -> list[dict[str, Any]]:
    """One-second slices by end time, from the start of the window."""
    totals = rows.execute(
        f"SELECT CAST(end - ? AS INTEGER) AS t, count(*), sum({_OK}), sum(len_bytes), max(us) "
        "FROM counted GROUP BY t ORDER BY t",
        (warmup_s,),
    ).fetchall()
    grouped: dict[int, list[tuple[int, int]]] = {}
    for t, us, count in rows.execute(
        "SELECT CAST(end - ? AS INTEGER) AS t, us, count(*) FROM counted "
        "GROUP BY t, us ORDER BY t, us",
        (warmup_s,),
    ):
        grouped.setdefault(t, []).append((us, count))
    return [
        {
            "t": t,
            "answered": answered,
            "ok": ok,
            "bytes": size,
            "p50_us": _percentile(grouped[t], answered, 50),
            "p90_us": _percentile(grouped[t], answered, 90),
            "p99_us": _percentile(grouped[t], answered, 99),
            "max_us": longest,
        }
        for t, answered, ok, size, longest in totals
    ]


def _percentile(pairs: list[tuple[int, int]], n: int, percentile: int) -> Optional[int]:
    """Nearest rank among (value, count) pairs in ascending order."""
    left = max(1, -(-percentile * n // 100))
    for value, count in pairs:
        left -= count
        if left <= 0:
            return value
    return None
