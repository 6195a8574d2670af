"""The version key of one run in the API: a text that changes with the response.

There is no key while the run is active, since everything may change at any time. Each job has a
revision. A write that changes what the response shows of a job, its placements, builds, trials or
analyses sets NEXT_REVISION in the same transaction, and does so first: whoever locks a job and its
trials locks the job first, or two writers would wait for each other. The key has the sum of the
revisions, which only grows, since jobs are never added to a run or removed from it. The reason why
a queued job waits also depends on the hosts of the team and their leases. The estimate of its start
depends on the other jobs of the team. Both are part of the key as values.
"""

from uuid import UUID

from django.db import connection
from django.db.models import F

from orchestrator.accounts.members import Member
from orchestrator.runs.states import JOB_ENDED, RUN_ENDED

#: The new value of `revision` in an update of jobs.
NEXT_REVISION = F("revision") + 1

_ENDED = sorted(str(state) for state in RUN_ENDED)
_JOB_ENDED = sorted(str(state) for state in JOB_ENDED)

_HOSTS = """\
SELECT md5(string_agg((host.id, host.name, host.state, host.message, host.profile_id, host.tags,
                       lease.job_id)::text, '' ORDER BY host.id))
FROM fleet_host host LEFT JOIN runs_hostlease lease ON lease.host_id = host.id
WHERE host.team_id = run.team_id"""
#: The work before a queued run in the queue, for the estimate of its start.
_UNENDED = """\
SELECT concat_ws(' ', count(*), sum(job.revision), sum(hashtext(job.id::text)::bigint))
FROM runs_job job JOIN runs_run other ON other.id = job.run_id
WHERE other.team_id = run.team_id AND NOT job.state = ANY(%s)"""
#: Runs whose wait reason also depends on the time.
_FOR_A_TIME = """\
EXISTS (SELECT FROM fleet_host host WHERE host.team_id = run.team_id
        AND (host.open_hours <> '' OR host.reserved_until > now()))
OR EXISTS (SELECT FROM runs_job job WHERE job.run_id = run.id AND job.not_before > now())"""

#: A run of a deleted benchmark: no member can see it.
_DELETED = """\
EXISTS (SELECT FROM benchmarks_definition definition
        JOIN benchmarks_benchmark benchmark ON benchmark.id = definition.benchmark_id
        WHERE definition.id = run.definition_id AND benchmark.deleted_at IS NOT NULL)"""

_RUN = f"""\
SELECT concat_ws(' ',
    (SELECT sum(job.revision) FROM runs_job job WHERE job.run_id = run.id),
    CASE WHEN run.state = 'queued' THEN ({_HOSTS}) END,
    CASE WHEN run.state = 'queued' THEN ({_UNENDED}) END)
FROM runs_run run WHERE run.id = %s AND run.team_id = %s AND NOT {_DELETED}
    AND (run.state = ANY(%s) OR run.state = 'queued' AND NOT ({_FOR_A_TIME}))
"""


def read_run_version(member: Member, run_id: UUID) -> str | None:
    """Return the key of a run that has ended, or that has not begun.

    None if it is under way, does not exist, was deleted, or waits for a time of day.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RUN, (_JOB_ENDED, run_id, member.team.pk, _ENDED))
        row = cursor.fetchone()
    return row[0] if row else None
