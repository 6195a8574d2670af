"""The only module that writes readings and points: many trials in few statements, each once.

Everything runs in the transaction of the caller. An existing reading is not changed, so a result
may be sent or fetched again. Points are sums that merge, written by one upsert in the order of
their keys: writers to the same points wait for each other and never overwrite.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from django.db import connection, transaction

from orchestrator.results.models.series import MOST_VALUES
from orchestrator.runs.states import Validity
from orchestrator.stats.rollup import roll_up

#: (case, host, metric).
SeriesKey = tuple[int, UUID, int]

#: The limit of remembered series, about ten megabytes.
MOST_SERIES_KNOWN = 50_000
MOST_METRICS_KNOWN = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """The readings of one trial: metric key → value in the SI unit of the metric, finite.

    Fields are row ids. `block` is 0 if no other commit was measured in the same block. `place` is
    that in the order of the job, from 1. `run` is the number of its run (`hash_run`), and `build`
    identifies its build. All are 0 if they are not known.
    `configuration` is 0 if the measured configuration is unknown. `epoch` counts the changes of the
    host before. `provenance` is what a client sent; None for trials of this Pitwall.
    """

    id: UUID
    benchmark: int
    case: int
    host: UUID
    commit: int
    at: datetime
    validity: str
    readings: Mapping[str, float]
    block: int = 0
    place: int = 0
    run: int = 0
    build: int = 0
    configuration: int = 0
    epoch: int = 0
    provenance: Mapping[str, Any] | None = None


class Ids:
    """The ids of metrics (by team and key) and of series that are committed.

    Ids that a transaction looks up or creates are shared only after its commit. If it is rolled
    back, another transaction may give the same metric another id.
    """

    def __init__(self) -> None:
        self.metrics: dict[tuple[int, str], int] = {}
        self.series: dict[SeriesKey, int] = {}

    def learn_series(self, new_ids: Mapping[SeriesKey, int]) -> None:
        if len(self.series) + len(new_ids) > MOST_SERIES_KNOWN:
            self.forget()
        self.series.update(new_ids)

    def learn_metrics(self, team: int, new_ids: Mapping[str, int]) -> None:
        if len(self.metrics) + len(new_ids) > MOST_METRICS_KNOWN:
            self.forget()
        self.metrics.update({(team, key): pk for key, pk in new_ids.items()})

    def forget(self) -> None:
        """Replace the mappings: another thread may be reading the old ones."""
        self.metrics, self.series = {}, {}


class PointKey(NamedTuple):
    series: int
    commit: int
    epoch: int
    configuration: int


_READINGS = """
INSERT INTO results_reading
    (id, case_id, commit_id, at, host_id, validity, metrics, "values", provenance)
SELECT id, case_id, commit_id, at, host_id, validity, metrics::int[], vals::float8[], told
FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[], %s::timestamptz[], %s::uuid[], %s::text[],
            %s::text[], %s::text[], %s::jsonb[])
    AS row(id, case_id, commit_id, at, host_id, validity, metrics, vals, told)
ON CONFLICT (id) DO NOTHING
RETURNING id
"""

_KNOWN_SERIES = """
SELECT case_id, host_id, metric_id, series.id
FROM results_series series
JOIN unnest(%s::bigint[], %s::uuid[], %s::int[]) AS wanted(case_id, host_id, metric_id)
    USING (case_id, host_id, metric_id)
"""

_NEW_SERIES = """
INSERT INTO results_series (benchmark_id, case_id, host_id, metric_id)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::uuid[], %s::int[])
ON CONFLICT (case_id, host_id, metric_id) DO NOTHING
"""


def build_newest_sql(array: str) -> str:
    """Return the SQL for the last values of an array that a point keeps."""
    return f"({array})[greatest(1, cardinality({array}) - {MOST_VALUES - 1}):]"


def build_run_sums_sql(values: str, runs: str) -> str:
    """Return the SQL for the number of runs, and the mean and sum of squares of their mean logs.

    Null if there is no value, or one of zero or less. As `stats.rollup` computes them.
    """
    return f"""
    SELECT count(*), CASE WHEN min(least) > 0 THEN avg(log) END,
           CASE WHEN min(least) > 0 THEN coalesce(regr_sxx(log, log), 0) END
    FROM (SELECT avg(CASE WHEN value > 0 THEN ln(value) END) AS log, min(value) AS least
          FROM unnest({values}, {runs}) AS pair(value, run) GROUP BY run) one
"""


_NEWEST_VALUES = build_newest_sql('point."values" || EXCLUDED."values"')
_NEWEST_RUNS = build_newest_sql("point.runs || EXCLUDED.runs")
#: An existing point adds the values of the new one.
MERGE = f"""\
ON CONFLICT (series_id, commit_id, epoch, configuration) DO UPDATE SET
    position = EXCLUDED.position,
    at = greatest(point.at, EXCLUDED.at),
    trials = point.trials + EXCLUDED.trials,
    suspect = point.suspect + EXCLUDED.suspect,
    invalid = point.invalid + EXCLUDED.invalid,
    mean = CASE WHEN point.trials = 0 THEN EXCLUDED.mean WHEN EXCLUDED.trials = 0 THEN point.mean
        ELSE (point.trials * point.mean + EXCLUDED.trials * EXCLUDED.mean)
        / (point.trials + EXCLUDED.trials) END,
    (run_count, mean_log, m2_log) = ({build_run_sums_sql(_NEWEST_VALUES, _NEWEST_RUNS)}),
    "values" = {_NEWEST_VALUES},
    runs = {_NEWEST_RUNS},
    blocks = {build_newest_sql("point.blocks || EXCLUDED.blocks")},
    places = {build_newest_sql("point.places || EXCLUDED.places")},
    builds = {build_newest_sql("point.builds || EXCLUDED.builds")}
"""

#: The same statement queues the series for change point detection.
_POINTS = f"""
WITH changed AS (INSERT INTO results_changedseries (series) VALUES (%s::bigint[]))
INSERT INTO results_point AS point
    (series_id, commit_id, epoch, configuration, position, at, trials, suspect, invalid, mean,
     run_count, mean_log, m2_log, "values", blocks, places, runs, builds)
SELECT series_id, row.commit_id, epoch, configuration, commit.position, at, trials, suspect,
       invalid, mean, run_count, mean_log, m2_log, vals::float8[], blocks::bigint[],
       places::int[], runs::bigint[], builds::int[]
FROM unnest(%s::bigint[], %s::bigint[], %s::smallint[], %s::int[], %s::timestamptz[], %s::int[],
            %s::int[], %s::int[], %s::float8[], %s::int[], %s::float8[], %s::float8[],
            %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
    AS row(series_id, commit_id, epoch, configuration, at, trials, suspect, invalid, mean,
           run_count, mean_log, m2_log, vals, blocks, places, runs, builds)
JOIN benchmarks_commit commit ON commit.id = row.commit_id
ORDER BY series_id, row.commit_id, epoch, configuration
{MERGE}"""


def record(
    rows: Sequence[MeasuredRow], metrics: Mapping[str, int], ids: Ids | None = None
) -> set[UUID]:
    """Store the new results among `rows` and return their ids; call it within a transaction.

    `metrics` are the ids of all keys in `rows` (`recording.metrics`). `ids` is a cache; new ids are
    added to it after the commit.
    """
    ids = ids or Ids()
    once = {row.id: row for row in rows}
    with _open_cursor() as cursor:
        # In id order: two senders of the same results must not deadlock.
        table = (_format_reading(row, metrics) for row in sorted(once.values(), key=_read_id))
        cursor.execute(_READINGS, _format_columns(table, 9), prepare=True)
        stored = {key for (key,) in cursor.fetchall()}
        new = [row for row in once.values() if row.id in stored]
        if new:
            known, new_ids = _ensure_series_ids(cursor, new, metrics, ids)
            _write_points(cursor, new, known | new_ids, metrics)
            if new_ids:
                transaction.on_commit(partial(ids.learn_series, new_ids))
    return stored


def _open_cursor() -> psycopg.Cursor[Any]:
    """Return a cursor of psycopg; unlike Django's, it prepares a statement once per connection."""
    connection.ensure_connection()
    return psycopg.Cursor(connection.connection)


def _read_id(row: MeasuredRow) -> int:
    return row.id.int


def _format_reading(row: MeasuredRow, metrics: Mapping[str, int]) -> tuple[str, ...]:
    return (
        row.id.hex,
        str(row.case),
        str(row.commit),
        row.at.isoformat(),
        row.host.hex,
        row.validity,
        _format_array(metrics[key] for key in row.readings),
        _format_array(row.readings.values()),
        "NULL" if row.provenance is None else _quote_text(json.dumps(row.provenance)),
    )


def _ensure_series_ids(
    cursor: Any, rows: Sequence[MeasuredRow], metrics: Mapping[str, int], ids: Ids
) -> tuple[dict[SeriesKey, int], dict[SeriesKey, int]]:
    """Return the ids that were cached, and those that were looked up or created now."""
    shared = ids.series
    wanted = {
        (row.case, row.host, metrics[key]): row.benchmark for row in rows for key in row.readings
    }
    known = {key: shared[key] for key in wanted if key in shared}
    new_ids: dict[SeriesKey, int] = {}
    if unknown := wanted.keys() - known.keys():
        new_ids = _load_known_series(cursor, unknown)
        if missing := sorted(unknown - new_ids.keys()):
            rows_of_them = ((str(wanted[key]), *_format_key(key)) for key in missing)
            cursor.execute(_NEW_SERIES, _format_columns(rows_of_them, 4))
            new_ids |= _load_known_series(cursor, missing)
    return known, new_ids


def _load_known_series(cursor: Any, wanted: Iterable[SeriesKey]) -> dict[SeriesKey, int]:
    cursor.execute(_KNOWN_SERIES, _format_columns(map(_format_key, wanted), 3), prepare=True)
    return {(case, host, metric): series for case, host, metric, series in cursor.fetchall()}


def _write_points(
    cursor: Any,
    rows: Sequence[MeasuredRow],
    series: Mapping[SeriesKey, int],
    metrics: Mapping[str, int],
) -> None:
    groups: dict[PointKey, list[tuple[MeasuredRow, float]]] = defaultdict(list)
    for row in rows:
        for key, value in row.readings.items():
            number = series[row.case, row.host, metrics[key]]
            groups[PointKey(number, row.commit, row.epoch, row.configuration)].append((row, value))
    table = [_build_point(key, groups[key]) for key in sorted(groups)]
    if table:
        changed = sorted({key.series for key in groups})
        cursor.execute(_POINTS, [changed, *_format_columns(table, 17)], prepare=True)


def _build_point(key: PointKey, trials: Sequence[tuple[MeasuredRow, float]]) -> tuple[str, ...]:
    counted = [(row, value) for row, value in trials if row.validity != Validity.INVALID]
    newest = counted[-MOST_VALUES:]
    rollup = roll_up([value for _, value in newest], [row.run for row, _ in newest])
    return (
        *map(str, key),
        max(row.at for row, _ in trials).isoformat(),
        str(len(counted)),
        str(sum(row.validity == Validity.SUSPECT for row, _ in counted)),
        str(len(trials) - len(counted)),
        _number(math.fsum(value for _, value in counted) / len(counted) if counted else None),
        str(rollup.runs),
        _number(rollup.mean_log),
        _number(rollup.m2_log),
        _format_array(value for _, value in newest),
        _format_array(row.block for row, _ in newest),
        _format_array(row.place for row, _ in newest),
        _format_array(row.run for row, _ in newest),
        _format_array(row.build for row, _ in newest),
    )


def _format_key(key: SeriesKey) -> tuple[str, ...]:
    return (str(key[0]), key[1].hex, str(key[2]))


def _number(value: float | None) -> str:
    return "NULL" if value is None else repr(value)


def _format_array(values: Iterable[float]) -> str:
    """Format an array as an element of another, so one column holds arrays of different lengths."""
    return '"{' + ",".join(map(repr, values)) + '}"'


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _format_columns(table: Iterable[tuple[str, ...]], width: int) -> list[str]:
    """Transpose to columns in PostgreSQL's array syntax: much cheaper than arrays of values."""
    columns = list(zip(*table, strict=True)) or [()] * width
    return ["{" + ",".join(column) + "}" for column in columns]
