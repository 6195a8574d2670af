"""Version keys of pages and answers that show runs: one cheap query each.

A version key is a text that changes with the content. There is none during a run, since everything
may change at any time.
"""

from uuid import UUID

from django.db import connection

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.runs.states import RUN_ENDED

_ENDED = sorted(str(state) for state in RUN_ENDED)
_RUNS = """\
WITH shown AS (
    SELECT id, state, message, ended_at, created_at, requested_by_id, schedule_id, definition_id
    FROM runs_run WHERE {whose} = %s ORDER BY created_at DESC LIMIT %s OFFSET %s
)
SELECT md5(string_agg(shown::text, '|' ORDER BY created_at DESC)),
       coalesce(bool_and(state = ANY(%s)), false),
       coalesce(max(ended_at) > now() - interval '1 hour', false) {beside}
FROM shown
"""

_OF_PROJECT = """(
    SELECT benchmark.project_id FROM benchmarks_definition definition
    JOIN benchmarks_benchmark benchmark ON benchmark.id = definition.benchmark_id
    WHERE definition.id = definition_id)"""

_BESIDE = """, md5(concat(
    (SELECT string_agg(concat_ws(' ', host.id, host.name, host.state, lease.job_id, profile.name),
                       '|' ORDER BY host.id)
     FROM fleet_host host JOIN fleet_hardwareprofile profile ON profile.id = host.profile_id
     LEFT JOIN runs_hostlease lease ON lease.host_id = host.id WHERE host.team_id = %s),
    '#',
    (SELECT string_agg(concat_ws(' ', schedule.id, name, next_at, enabled, benchmark.title,
                                 CASE WHEN next_at < now() + interval '1 hour'
                                      THEN date_trunc('minute', now()) END),
                       '|' ORDER BY schedule.id)
     FROM runs_schedule schedule JOIN benchmarks_benchmark benchmark
         ON benchmark.id = schedule.benchmark_id WHERE schedule.team_id = %s)
))
"""


def _rows(table: str) -> str:
    """Return SQL that detects changed and deleted rows: an updated row has a new ctid and xmin."""
    return f"sum(hashtextextended({table}.ctid::text, {table}.xmin::text::bigint))"


#: The wait reason of a run depends on the hosts of its team and their leases, and so on the time.
_WAITS = f"""\
SELECT concat_ws(' ', {_rows("host")}, {_rows("lease")}) FROM fleet_host host
LEFT JOIN runs_hostlease lease ON lease.host_id = host.id WHERE host.team_id = run.team_id"""
_FOR_A_TIME = """\
EXISTS (SELECT FROM fleet_host host WHERE host.team_id = run.team_id AND host.open_hours <> '')
OR EXISTS (SELECT FROM runs_job job WHERE job.run_id = run.id AND job.not_before > now())"""

_RUN = f"""\
SELECT concat_ws(' ', run.ctid, run.xmin,
    (SELECT {_rows("job")} FROM runs_job job WHERE job.run_id = run.id),
    (SELECT {_rows("trial")} FROM runs_trial trial JOIN runs_job job ON job.id = trial.job_id
     WHERE job.run_id = run.id),
    (SELECT {_rows("build")} FROM runs_build build JOIN runs_job job ON job.id = build.job_id
     WHERE job.run_id = run.id),
    CASE WHEN run.state = 'queued' THEN ({_WAITS}) END)
FROM runs_run run WHERE run.id = %s AND run.team_id = %s
    AND (run.state = ANY(%s) OR run.state = 'queued' AND NOT ({_FOR_A_TIME}))
"""


def mark_of_run(member: Member, run_id: UUID) -> str | None:
    """Return the key of a run that has ended, including late trials, or that has not begun.

    None if it is under way, does not exist, or waits for a time of day.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RUN, (run_id, member.team.pk, _ENDED))
        row = cursor.fetchone()
    return row[0] if row else None


def mark_of_runs(member: Member, *, count: int, offset: int = 0) -> str | None:
    """Return the key of a page of the member's runs, newest first.

    None if one of them may change, there are none, or one has ended recently: its age is shown in
    minutes, and late trials may arrive.
    """
    if isinstance(member, Visitor):
        query = _RUNS.format(beside="", whose=_OF_PROJECT)
        return _mark(query, (member.project, count, offset, _ENDED))
    query = _RUNS.format(beside="", whose="team_id")
    return _mark(query, (member.team.pk, count, offset, _ENDED))


def mark_of_overview(member: Member, *, count: int) -> str | None:
    """Return the key of the newest runs, as above, the team's host states and its schedules."""
    team = member.team.pk
    return _mark(
        _RUNS.format(beside=_BESIDE, whose="team_id"), (team, count, 0, _ENDED, team, team)
    )


def _mark(query: str, values: tuple[int | list[str], ...]) -> str | None:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        mark, ended, lately, *beside = cursor.fetchone()
    return " ".join([mark, *beside]) if ended and not lately else None
