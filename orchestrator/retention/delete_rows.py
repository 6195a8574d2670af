"""Delete rows in batches of limited size, within the caller's transaction."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models.functions import Coalesce

from orchestrator.benchmarks.models import Project
from orchestrator.results.models import (
    Histogram,
    LoadResult,
    PointHistogram,
    Reading,
    RemovalKind,
)
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import Validity
from orchestrator.runs.version_keys import NEXT_REVISION
from orchestrator.stats.histogram import Histogram as Distribution

#: Rows per transaction: files are large, distributions have to be merged, the rest is light.
FILES = 500
DISTRIBUTIONS = 200
TRIALS = 500
LIGHT = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRows:
    """`bytes` as they were stored; `more`: some rows of this kind remain."""

    rows: int
    bytes: int
    more: bool = False


class _PointKey(NamedTuple):
    commit: int
    case: int
    host: UUID
    kind: str


_OF_RUNS = (
    "JOIN runs_trial trial ON trial.id = row.trial_id JOIN runs_job job ON job.id = trial.job_id"
)

_REMOVE_FILES = f"""
WITH gone AS (
    DELETE FROM results_artifact WHERE id IN (
        SELECT row.id FROM results_artifact row {_OF_RUNS} WHERE job.run_id = %s LIMIT %s
    ) RETURNING octet_length(compressed) AS size
) SELECT count(*), coalesce(sum(size), 0) FROM gone
"""

_REMOVE_READINGS = """
WITH gone AS (
    DELETE FROM results_reading WHERE id IN (
        SELECT row.id FROM results_reading row
        JOIN benchmarks_case chosen ON chosen.id = row.case_id
        JOIN benchmarks_benchmark benchmark ON benchmark.id = chosen.benchmark_id
        WHERE benchmark.project_id = %s AND row.provenance IS NOT NULL AND row.at < %s
            AND NOT row.commit_id = ANY(%s)
        LIMIT %s
    ) RETURNING pg_column_size(results_reading.*) AS size
) SELECT count(*), coalesce(sum(size), 0) FROM gone
"""

_OLD_POINTS = """
FROM results_point row WHERE row.commit_id = ANY(%s) AND NOT EXISTS (
    SELECT 1 FROM results_point newer WHERE newer.commit_id = row.commit_id AND newer.at >= %s
)
"""

_REMOVE_POINTS = f"""
WITH gone AS (
    DELETE FROM results_point WHERE (series_id, commit_id, epoch, configuration) IN (
        SELECT series_id, commit_id, epoch, configuration {_OLD_POINTS} LIMIT %s
    ) RETURNING pg_column_size(results_point.*) AS size
) SELECT count(*), coalesce(sum(size), 0) FROM gone
"""

_REMOVE_POINT_HISTOGRAMS = """
DELETE FROM results_pointhistogram row WHERE row.commit_id = ANY(%s) AND NOT EXISTS (
    SELECT 1 FROM results_point point WHERE point.commit_id = row.commit_id
)
"""


def remove_files(run: Run) -> DeletedRows:
    """Delete raw output of the run's trials."""
    return _run_deletion(_REMOVE_FILES, [run.pk, FILES], limit=FILES)


def merge_distributions(run: Run) -> DeletedRows:
    """Merge distributions of its trials into those of their points, without those of loads."""
    rows = _load_next_distributions(run)
    parts: dict[_PointKey, list[tuple[str, bytes]]] = defaultdict(list)
    for _, commit, case, host, kind, validity, encoded in rows:
        parts[_PointKey(commit, case, host, kind)].append((validity, bytes(encoded)))
    # Lock in one order, so that two runs of the same commits cannot deadlock.
    for key in sorted(parts, key=str):
        _merge(run, key, parts[key])
    Histogram.objects.filter(pk__in=[row[0] for row in rows]).delete()
    size = sum(len(row[-1]) for row in rows)
    if len(rows) == DISTRIBUTIONS:
        return DeletedRows(rows=len(rows), bytes=size, more=True)
    loads = list(
        LoadResult.objects.filter(trial__job__run=run).values_list("pk", "encoded")[:DISTRIBUTIONS]
    )
    LoadResult.objects.filter(pk__in=[pk for pk, _ in loads]).delete()
    return DeletedRows(
        rows=len(rows) + len(loads),
        bytes=size + sum(len(encoded) for _, encoded in loads),
        more=len(loads) == DISTRIBUTIONS,
    )


def remove_trials(run: Run) -> DeletedRows:
    """Delete single trials with their readings; the points that contain them stay."""
    run.jobs.update(revision=NEXT_REVISION)
    trials = list(Trial.objects.filter(job__run=run).values_list("pk", flat=True)[:TRIALS])
    size = _measure_trials(trials)
    Reading.objects.filter(pk__in=trials).delete()
    Trial.objects.filter(pk__in=trials).delete()
    return DeletedRows(rows=len(trials), bytes=size, more=len(trials) == TRIALS)


def remove_readings(project: Project, cutoff: datetime, kept: Collection[int]) -> DeletedRows:
    """Delete single imported results; the points that contain them stay."""
    return _run_deletion(_REMOVE_READINGS, [project.pk, cutoff, list(kept), LIGHT], limit=LIGHT)


def remove_points(commits: Sequence[int], cutoff: datetime) -> DeletedRows:
    """Delete points of these commits, except of commits that were measured again since."""
    gone = _run_deletion(_REMOVE_POINTS, [list(commits), cutoff, LIGHT], limit=LIGHT)
    with connection.cursor() as cursor:
        cursor.execute(_REMOVE_POINT_HISTOGRAMS, [list(commits)])
    return gone


def count_rows_to_delete(kind: RemovalKind, runs: Sequence[Run]) -> DeletedRows:
    """Count the rows and bytes of one kind for these runs."""
    ids = [run.pk for run in runs]
    if kind == RemovalKind.FILES:
        return _count_rows(
            "sum(octet_length(row.compressed))", f"results_artifact row {_OF_RUNS}", ids
        )
    if kind == RemovalKind.TRIALS:
        of_runs = "runs_trial row JOIN runs_job job ON job.id = row.job_id"
        return _count_rows("sum(pg_column_size(row.*))", of_runs, ids)
    parts = [
        _count_rows("sum(octet_length(row.encoded))", f"{table} row {_OF_RUNS}", ids)
        for table in ("results_histogram", "results_loadresult")
    ]
    return DeletedRows(
        rows=sum(each.rows for each in parts), bytes=sum(each.bytes for each in parts)
    )


def count_readings(project: Project, cutoff: datetime, kept: Collection[int]) -> DeletedRows:
    rows = Reading.objects.filter(
        case__benchmark__project=project, provenance__isnull=False, at__lt=cutoff
    )
    return DeletedRows(rows=rows.exclude(commit__in=kept).count(), bytes=0)


def count_points(commits: Sequence[int], cutoff: datetime) -> DeletedRows:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*), coalesce(sum(pg_column_size(row.*)), 0) {_OLD_POINTS}",
            [list(commits), cutoff],
        )
        rows, size = cursor.fetchone()
    return DeletedRows(rows=rows, bytes=int(size))


def _load_next_distributions(run: Run) -> list[tuple[Any, ...]]:
    histograms = Histogram.objects.filter(trial__job__run=run).order_by("trial_id", "kind")
    return list(
        histograms.values_list(
            "pk",
            "trial__variant__commit_id",
            "trial__case_id",
            Coalesce("trial__host_id", "trial__job__host_id"),
            "kind",
            "trial__validity",
            "encoded",
        )[:DISTRIBUTIONS]
    )


def _merge(run: Run, key: _PointKey, parts: Sequence[tuple[str, bytes]]) -> None:
    """Merge distributions into that of their point; invalid ones are counted and left out."""
    mine = [encoded for validity, encoded in parts if validity != Validity.INVALID]
    if not mine:
        return
    held = PointHistogram.objects.select_for_update().filter(
        commit=key.commit, case=key.case, host=key.host, definition=run.definition_id, kind=key.kind
    )
    point = held.first() or PointHistogram(
        commit_id=key.commit,
        case_id=key.case,
        host_id=key.host,
        definition_id=run.definition_id,
        kind=key.kind,
        trials=0,
        suspect=0,
        excluded=0,
    )
    before = [bytes(point.encoded)] if point.pk else []
    whole = Distribution.merged(Distribution.decode(each) for each in [*before, *mine])
    point.encoded, point.count = whole.encode(), whole.total_count
    point.trials += len(mine)
    point.suspect += sum(validity == Validity.SUSPECT for validity, _ in parts)
    point.excluded += len(parts) - len(mine)
    point.save()


def _measure_trials(trials: Sequence[UUID]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(pg_column_size(trial.*) + coalesce(pg_column_size(reading.*), 0)),"
            " 0) FROM runs_trial trial LEFT JOIN results_reading reading ON reading.id = trial.id "
            "WHERE trial.id = ANY(%s)",
            [list(trials)],
        )
        return int(cursor.fetchone()[0])


def _run_deletion(sql: str, values: list[Any], *, limit: int) -> DeletedRows:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows, size = cursor.fetchone()
    return DeletedRows(rows=rows, bytes=int(size), more=rows == limit)


def _count_rows(size: str, source: str, runs: Sequence[UUID]) -> DeletedRows:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*), coalesce({size}, 0) FROM {source} WHERE job.run_id = ANY(%s)",
            [list(runs)],
        )
        rows, total_bytes = cursor.fetchone()
    return DeletedRows(rows=rows, bytes=int(total_bytes))
