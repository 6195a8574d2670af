"""All points of one series along a line of commits, as columns, in one row of the database.

A history of thousands of points is read a hundred times as often as anything else. So the columns
are packed as bytes, and become arrays without a Python object per value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from django.db import connection

from orchestrator.histories.lines import Points

#: Microseconds from 1970 to 2000, the epoch of PostgreSQL.
_POSTGRES_EPOCH_US = 946_684_800_000_000

#: Two numbers share eight bytes if both fit.
_PACKED = """
SELECT string_agg(int8send(coalesce(position, -1)::int8 << 16 | epoch), ''),
       string_agg(int8send(commit_id), ''), string_agg(timestamptz_send(at), ''),
       string_agg(int8send(trials::int8 << 32 | (configuration::int8 & 4294967295)), ''),
       string_agg(int8send(suspect::int8 << 32 | invalid), ''),
       string_agg(int8send(run_count), ''),
       string_agg(float8send(coalesce(mean, 'NaN')), ''),
       string_agg(float8send(coalesce(mean_log, 'NaN')), ''),
       string_agg(float8send(coalesce(m2_log, 'NaN')), '')
FROM results_point
WHERE series_id = %s AND """


def load_points(series: int) -> Points:
    """Return all points of commits of the default branch, in no order."""
    return _read(series, "position IS NOT NULL", [])


def load_points_until(series: int, position: int) -> Points:
    """Return the points up to a position on the default branch."""
    return _read(series, "position <= %s", [position])


def load_commit_points(series: int, places: Mapping[int, int]) -> Points:
    """Return the points of these commits (id → position)."""
    points = _read(series, "commit_id = ANY(%s)", [list(places)])
    own = np.array([places[commit] for commit in points.commit.tolist()], dtype=np.int64)
    return replace(points, position=own)


def _read(series: int, condition: str, parameters: Sequence[int | list[int]]) -> Points:
    with connection.cursor() as cursor:
        cursor.execute(_PACKED + condition, [series, *parameters])
        row = cursor.fetchone()
    packed = [bytes(each or b"") for each in row]
    place, commit, at, counts, doubts, runs = (
        np.frombuffer(each, ">i8").astype(np.int64) for each in packed[:6]
    )
    mean, mean_log, m2_log = (np.frombuffer(each, ">f8").astype(np.float64) for each in packed[6:])
    return Points(
        position=place >> 16,
        epoch=place & 0xFFFF,
        commit=commit,
        at=(at + _POSTGRES_EPOCH_US) // 1_000_000,
        trials=counts >> 32,
        configuration=counts.astype(np.int32).astype(np.int64),
        suspect=doubts >> 32,
        invalid=doubts & 0xFFFFFFFF,
        run_count=runs,
        mean=mean,
        mean_log=mean_log,
        m2_log=m2_log,
    )
