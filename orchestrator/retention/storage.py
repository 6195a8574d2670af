"""Storage of a team in bytes: files and distributions of its trials, and imported results."""

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q

from orchestrator.accounts.models import Team, TeamQuota
from orchestrator.accounts.quotas import load_quotas, record_storage

#: Maximum age of a count, since counting reads a row of every file. The shorter one applies if more
#: than half of the quota is used.
STALE, STALE_WITH_ROOM = timedelta(minutes=5), timedelta(hours=1)
_BYTES = """
SELECT coalesce((
    SELECT sum(octet_length(file.compressed)) FROM results_artifact file
    JOIN runs_trial trial ON trial.id = file.trial_id
    JOIN runs_job job ON job.id = trial.job_id
    JOIN runs_run run ON run.id = job.run_id WHERE run.team_id = %s
), 0) + coalesce((
    SELECT sum(octet_length(histogram.encoded)) FROM results_histogram histogram
    JOIN runs_trial trial ON trial.id = histogram.trial_id
    JOIN runs_job job ON job.id = trial.job_id
    JOIN runs_run run ON run.id = job.run_id WHERE run.team_id = %s
), 0) + coalesce((
    SELECT sum(pg_column_size(reading.*)) FROM results_reading reading
    JOIN benchmarks_case chosen ON chosen.id = reading.case_id
    JOIN benchmarks_benchmark benchmark ON benchmark.id = chosen.benchmark_id
    JOIN benchmarks_project project ON project.id = benchmark.project_id
    WHERE project.team_id = %s AND reading.provenance IS NOT NULL
), 0) + coalesce((
    SELECT sum(pg_column_size(figure.*)) FROM reports_referenceresult figure
    JOIN reports_referencesource source ON source.id = figure.source_id
    WHERE source.team_id = %s
), 0)
"""


def measure_storage(team: Team) -> int:
    """Count the bytes and store the result for `check_storage` of the quotas."""
    with connection.cursor() as cursor:
        cursor.execute(_BYTES, [team.pk] * 4)
        used = int(cursor.fetchone()[0])
    record_storage(team=team, used=used)
    return used


def get_storage_bytes(team: Team, now: datetime) -> int:
    """Return the count of the last minute, or count now."""
    lately = TeamQuota.objects.filter(team=team, storage_at__gt=now - timedelta(minutes=1)).first()
    return lately.storage_used if lately else measure_storage(team)


def measure_stale(now: datetime) -> None:
    """Count the storage of teams that have a quota and a stale count."""
    lately = Q(quota__storage_at__gt=now - STALE)
    for team in Team.objects.exclude(lately).select_related("quota"):
        quotas = load_quotas(team)
        if quotas.storage_bytes is None:
            continue
        counted_at = team.quota.storage_at if hasattr(team, "quota") else None
        has_room = quotas.storage_used * 2 < quotas.storage_bytes
        if counted_at is None or not has_room or counted_at < now - STALE_WITH_ROOM:
            measure_storage(team)
