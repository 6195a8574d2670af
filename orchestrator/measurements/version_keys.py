"""Version keys of cached pages: each is a text that changes with what the page shows.

A key is one query, cheap next to the page. It is read before the page is computed. So a write in
between leaves a newer page under an older key, which the next reader computes again, and never an
older page under a newer key. Measurements are only added and deleted, so their counts and sums
change with them. Names and titles are part of the key as they are.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.db import connection

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.runs.states import RUN_ENDED

#: The key of a list with a run that ended within this time changes each minute, as its age does.
LATELY = timedelta(hours=1)
_ENDED = sorted(str(state) for state in RUN_ENDED)

_RUNS = """\
WITH shown AS (
    SELECT id, team_id, state, message, ended_at, created_at, requested_by_id, schedule_id,
           definition_id
    FROM runs_run WHERE {whose} AND NOT EXISTS (
        SELECT FROM benchmarks_definition definition
        JOIN benchmarks_benchmark benchmark ON benchmark.id = definition.benchmark_id
        WHERE definition.id = definition_id AND benchmark.deleted_at IS NOT NULL
    ) ORDER BY created_at DESC LIMIT %s OFFSET %s
)
SELECT md5(string_agg(concat_ws(' ', shown, benchmark.slug, benchmark.title, (
           SELECT sum(removal.rows) FROM results_removal removal
           WHERE removal.run_id = shown.id
       )), '|' ORDER BY shown.created_at DESC)),
       coalesce(bool_and(shown.state = ANY(%s)), false),
       CASE WHEN max(shown.ended_at) > now() - %s THEN date_trunc('minute', now()) END,
       (SELECT md5(string_agg(name, '|' ORDER BY id)) FROM fleet_hardwareprofile
        WHERE team_id = (SELECT team_id FROM shown LIMIT 1))
       {more}
FROM shown
JOIN benchmarks_definition definition ON definition.id = shown.definition_id
JOIN benchmarks_benchmark benchmark ON benchmark.id = definition.benchmark_id
"""
_OF_TEAM = "team_id = %s"
_OF_PROJECT = """definition_id IN (
        SELECT definition.id FROM benchmarks_definition definition
        JOIN benchmarks_benchmark benchmark ON benchmark.id = definition.benchmark_id
        WHERE benchmark.project_id = %s
    )"""

_HOSTS_AND_SCHEDULES = """, md5(concat(
    (SELECT string_agg(concat_ws(' ', host.id, host.name, host.state, lease.job_id,
                                 host.profile_id),
                       '|' ORDER BY host.id)
     FROM fleet_host host
     LEFT JOIN runs_hostlease lease ON lease.host_id = host.id WHERE host.team_id = %s),
    '#',
    (SELECT string_agg(concat_ws(' ', schedule.id, name, next_at, enabled, benchmark.title,
                                 CASE WHEN next_at < now() + interval '1 hour'
                                      THEN date_trunc('minute', now()) END),
                       '|' ORDER BY schedule.id)
     FROM runs_schedule schedule JOIN benchmarks_benchmark benchmark
         ON benchmark.id = schedule.benchmark_id
     WHERE schedule.team_id = %s AND benchmark.deleted_at IS NULL)
))
"""
_BENCHMARKS_AND_REPORTS = """, md5(concat(
    (SELECT string_agg(concat_ws(' ', id, slug, title), '|' ORDER BY id)
     FROM benchmarks_benchmark WHERE project_id = %s AND deleted_at IS NULL),
    '#',
    (SELECT string_agg(concat_ws(' ', report.slug, report.title), '|' ORDER BY report.id)
     FROM reports_savedreport report JOIN benchmarks_benchmark benchmark
         ON benchmark.id = report.benchmark_id
     WHERE benchmark.project_id = %s AND benchmark.deleted_at IS NULL)
))
"""

#: Points get more trials or are deleted. A trial leaves the state `planned` once. A run that waits
#: has variants. The number of rows that retention has removed only grows.
_RESULTS = """
SELECT concat_ws(' ', count(*), sum(point.trials), sum(point.suspect), sum(point.invalid),
    max(point.at),
    (SELECT count(*) FROM runs_trial trial
     JOIN runs_variant variant ON variant.id = trial.variant_id
     WHERE variant.commit_id = ANY(%(commits)s) AND trial.state <> 'planned'),
    (SELECT concat_ws('/', count(*), max(variant.id), sum((
         SELECT sum(removal.rows) FROM results_removal removal
         WHERE removal.run_id = variant.run_id)))
     FROM runs_variant variant WHERE variant.commit_id = ANY(%(commits)s)),
    (SELECT concat_ws('/', count(*), max(noise.id)) FROM results_hostbuildnoise noise
     JOIN results_series series ON series.id = noise.series_id
     WHERE series.benchmark_id = %(benchmark)s),
    (SELECT concat_ws('/', count(*), max(version)) FROM benchmarks_definition
     WHERE benchmark_id = %(benchmark)s),
    (SELECT concat_ws('/', count(*), max(imported_at)) FROM reports_referencesource
     WHERE team_id = %(team)s),
    (SELECT md5(string_agg(concat_ws(' ', host.name, profile.name), '|' ORDER BY host.id))
     FROM fleet_host host JOIN fleet_hardwareprofile profile ON profile.id = host.profile_id
     WHERE host.team_id = %(team)s))
FROM results_point point WHERE point.commit_id = ANY(%(commits)s)
"""


def read_runs_version(member: Member, *, count: int, offset: int = 0) -> str | None:
    """The key of a page of the member's runs, newest first.

    None if one of them goes on, or if there are none: do not cache these.
    """
    if isinstance(member, Visitor):
        return _mark(_OF_PROJECT, member.project, count, offset)
    return _mark(_OF_TEAM, member.team.pk, count, offset)


def read_overview_version(member: Member, *, count: int, project: int | None = None) -> str | None:
    """The key of the newest runs, as above, with all else that the first page shows.

    `project`: the one whose runs are shown, by default all of the team.
    """
    if isinstance(member, Visitor):
        public = member.project
        return _mark(_OF_PROJECT, public, count, 0, _BENCHMARKS_AND_REPORTS, (public, public))
    team = member.team.pk
    whose, owner = (_OF_TEAM, team) if project is None else (_OF_PROJECT, project)
    return _mark(whose, owner, count, 0, _HOSTS_AND_SCHEDULES, (team, team))


def read_results_version(benchmark: Benchmark, commits: Sequence[Commit]) -> str:
    """The key of all that reports and comparisons show of these commits."""
    values: dict[str, int | list[int]] = {
        "benchmark": benchmark.pk,
        "team": benchmark.project.team_id,
        "commits": [commit.pk for commit in commits],
    }
    with connection.cursor() as cursor:
        cursor.execute(_RESULTS, values)
        return str(cursor.fetchone()[0])


def _mark(
    whose: str,
    owner: int,
    count: int,
    offset: int = 0,
    more: str = "",
    values_of_more: tuple[int, int] | tuple[()] = (),
) -> str | None:
    """`whose`: the condition with the parameter `owner`."""
    query = _RUNS.format(whose=whose, more=more)
    values = (owner, count, offset, _ENDED, LATELY, *values_of_more)
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        mark, ended, *others = cursor.fetchone()
    return " ".join(str(each) for each in (mark, *others)) if ended else None
