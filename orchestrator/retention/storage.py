"""How many bytes a team takes: files and distributions of its trials, and what it imported."""

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q

from orchestrator.accounts.models import Team, TeamQuota
from orchestrator.accounts.quotas import load_quotas, note_storage

#: Counting reads a row of every file: a limit is looked after to within this time where more than
#: half of it is used, else to within the longer one.
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
    SELECT sum(pg_column_size(figure.*)) FROM results_referenceresult figure
    JOIN results_referencesource source ON source.id = figure.source_id
    WHERE source.team_id = %s
), 0)
"""


def measure_storage(team: Team) -> int:
    """Counts anew and notes it, as `check_storage` of the quotas reads it."""
    with connection.cursor() as cursor:
        cursor.execute(_BYTES, [team.pk] * 4)
        used = int(cursor.fetchone()[0])
    note_storage(team=team, used=used)
    return used


def storage_of(team: Team, now: datetime) -> int:
    """As it was counted within the last minute; else it is counted now."""
    lately = TeamQuota.objects.filter(team=team, storage_at__gt=now - timedelta(minutes=1)).first()
    return lately.storage_used if lately else measure_storage(team)


def measure_stale(now: datetime) -> None:
    """Of teams that have a limit, those that were not counted lately."""
    lately = Q(quota__storage_at__gt=now - STALE)
    for team in Team.objects.exclude(lately).select_related("quota"):
        quotas = load_quotas(team)
        if quotas.storage_bytes is None:
            continue
        counted_at = team.quota.storage_at if hasattr(team, "quota") else None
        has_room = quotas.storage_used * 2 < quotas.storage_bytes
        if counted_at is None or not has_room or counted_at < now - STALE_WITH_ROOM:
            measure_storage(team)
