"""Reads of alerts."""

from uuid import UUID

from django.db import connection
from django.db.models import Count, Prefetch, Q, QuerySet
from django.db.models.functions import Abs, Coalesce

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Team
from orchestrator.alerts.models import Alert, AlertState
from orchestrator.benchmarks.models import Case
from orchestrator.core.errors import NotFoundError
from orchestrator.regressions.change_points import with_parts
from orchestrator.results.models import Bisection, ChangePoint
from orchestrator.runs.models import Run

#: Raw SQL, since every page shows this count.
_OPEN = """
SELECT count(*) FROM alerts_alert alert
JOIN benchmarks_benchmark benchmark ON benchmark.id = alert.benchmark_id
WHERE alert.team_id = %s AND alert.state = %s AND benchmark.deleted_at IS NULL
"""


def load_alerts(member: Member) -> QuerySet[Alert]:
    """Return all alerts of the team, newest first, with related rows for their display."""
    parts = with_parts(ChangePoint.objects.all())
    return (
        Alert.objects.filter(_build_condition(member))
        .select_related("assignee", "changed_by", "fixed_by", "benchmark__project", "commit")
        .prefetch_related(
            Prefetch("change_point", queryset=with_parts(ChangePoint.objects.all(), every=True)),
            Prefetch("change_points", queryset=parts.order_by("series__case__label", "pk")),
            "change_points__bisections__good",
            Prefetch("runs", queryset=Run.objects.order_by("created_at")),
        )
        .order_by("-pk")
    )


def _build_condition(member: Member) -> Q:
    return member.sees("benchmark__project", team="team")


def filter_by_owner(rows: QuerySet[Alert], member: Member, *, owner: str) -> QuerySet[Alert]:
    """Return the alerts that a user handles: a user name, `me`, or `nobody`; all if it is empty."""
    if owner == "nobody":
        return rows.filter(assignee=None)
    if owner == "me":
        return rows.filter(assignee=member.actor)
    return rows.filter(assignee__username=owner) if owner else rows


def sort_by_change(rows: QuerySet[Alert]) -> QuerySet[Alert]:
    """Sort by the largest change, as the confirmation run measured it if there was one.

    Alerts without a change come first: a broken commit is worse than a slow one.
    """
    change = Coalesce("total_change", "change_point__confirmed_change", "change_point__change")
    return rows.order_by(Abs(change).desc(nulls_first=True), "-pk")


def load_alert(member: Member, alert_id: UUID) -> Alert:
    alert = load_alerts(member).filter(pk=alert_id).first()
    if alert is None:
        raise NotFoundError.build_for_team("alert")
    return alert


def load_bisections(alert: Alert) -> list[Bisection]:
    """Return the bisections of an alert from `load_alerts`, oldest first."""
    bisections = [each for row in alert.change_points.all() for each in row.bisections.all()]
    return sorted(bisections, key=lambda search: search.pk)


def load_broken_cases(alert: Alert) -> list[Case]:
    """Return the cases in which the commit of an alert is broken."""
    if not alert.broken_cases:
        return []
    cases = Case.objects.filter(benchmark=alert.benchmark_id, key__in=alert.broken_cases)
    return list(cases.order_by("label"))


def count_open_alerts(team: Team) -> int:
    """Return the number of alerts that are still open."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, [team.pk, AlertState.OPEN.value])
        return int(cursor.fetchone()[0])


def count_alerts(member: Member, *, owner: str = "") -> dict[str, int]:
    """Return the number of alerts in each state, including 0. `owner` as in `narrowed`."""
    rows = filter_by_owner(Alert.objects.filter(_build_condition(member)), member, owner=owner)
    counts = dict(rows.order_by().values_list("state").annotate(alerts=Count("pk")))
    return {str(state): counts.get(state, 0) for state in AlertState.values}
