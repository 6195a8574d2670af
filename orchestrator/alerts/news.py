"""What is new, for the first page: open alerts, and the largest changes of some days."""

from collections.abc import Sequence
from datetime import timedelta

from django.db import connection
from django.db.models import F, Q
from django.db.models.functions import Abs, Coalesce

from orchestrator.accounts.members import Member
from orchestrator.alerts.models import Alert, AlertState
from orchestrator.alerts.selectors import load_alerts
from orchestrator.core.clock import utc_now
from orchestrator.regressions.change_points import load_change_points
from orchestrator.results.models import CHANGE_REAL, ChangePoint, ChangeState

#: Changes that were refuted or dismissed are no news.
_STANDING = (ChangeState.OPEN, ChangeState.CONFIRMING, *CHANGE_REAL)
#: The rows that are read for each shown change, since a commit changes several metrics and cases.
_ALIKE = 12

# Of all teams where that is cheaper. A write of measurements adds a row to `changedseries`, and the
# detection that follows replaces it by a newer time.
_VERSION = """
SELECT concat_ws(' ',
    (SELECT concat_ws('/', count(*), max(id)) FROM results_changedseries),
    (SELECT max(at) FROM results_seriesdetection),
    (SELECT concat_ws('/', count(*), max(revised_at),
                      count(*) FILTER (WHERE state IN ('confirmed', 'small')),
                      count(*) FILTER (WHERE state = 'confirming'))
     FROM results_changepoint
     WHERE state IN ('open', 'confirming', 'confirmed', 'small')
         AND found_at > now() - interval '30 days'),
    (SELECT concat_ws('/', count(*), max(changed_at)) FROM alerts_alert
     WHERE team_id = team.id AND state = 'open'),
    (SELECT concat_ws('/', count(*), max(id)) FROM results_series series
     WHERE benchmark_id IN (SELECT benchmark.id FROM benchmarks_benchmark benchmark
                            JOIN benchmarks_project project ON project.id = benchmark.project_id
                            WHERE project.team_id = team.id)),
    (SELECT md5(string_agg(concat_ws(' ', newest.id, verdict.run_id), '|' ORDER BY newest.id))
     FROM (SELECT id FROM runs_run WHERE team_id = team.id
           ORDER BY created_at DESC LIMIT 30) newest
     LEFT JOIN comparisons_runverdict verdict ON verdict.run_id = newest.id),
    (SELECT md5(string_agg(concat_ws(' ', project.slug, project.name, benchmark.slug,
                                     benchmark.title), '|' ORDER BY benchmark.id))
     FROM benchmarks_benchmark benchmark
     JOIN benchmarks_project project ON project.id = benchmark.project_id
     WHERE project.team_id = team.id),
    (SELECT md5(string_agg(name, '|' ORDER BY id)) FROM fleet_host WHERE team_id = team.id)
)
FROM (SELECT %s::bigint AS id) team
"""


def read_news_version(team: int) -> str:
    """Return the version key of what is new in a team, and of the newest points of its series."""
    with connection.cursor() as cursor:
        cursor.execute(_VERSION, [team])
        return str(cursor.fetchone()[0])


def load_open_alerts(
    member: Member, *, project: int | None = None, limit: int = 5
) -> Sequence[Alert]:
    """Return the newest open alerts."""
    rows = load_alerts(member).filter(state=AlertState.OPEN)
    if project is not None:
        rows = rows.filter(benchmark__project=project)
    return list(rows[:limit])


def load_largest_changes(
    member: Member, *, days: int, project: int | None = None, limit: int = 5
) -> Sequence[ChangePoint]:
    """Return the largest changes that were found within some days among the latest points.

    A commit has at most one for each benchmark: its other metrics and cases show the same change.
    """
    rows = load_change_points(member).filter(
        Q(seen=True) | Q(state__in=CHANGE_REAL),
        state__in=_STANDING,
        found_at__gt=utc_now() - timedelta(days=days),
        recent=True,
    )
    if project is not None:
        rows = rows.filter(series__benchmark__project=project)
    size = Abs(Coalesce(F("confirmed_change"), F("change")))
    largest: dict[tuple[int, int], ChangePoint] = {}
    for row in rows.order_by(size.desc(), "-pk")[: limit * _ALIKE]:
        largest.setdefault((row.series.benchmark_id, row.commit_id), row)
    return list(largest.values())[:limit]
