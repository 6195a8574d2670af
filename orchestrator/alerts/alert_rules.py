"""Raise an alert for a regression that a confirmation run confirmed, or that cannot be confirmed.

A regression on one of our hosts is measured again before anybody is notified. If the results come
from elsewhere, or no host was free, the alert says so. A team is not notified twice of an alert
that somebody has handled. An alert whose regression a later commit fixed is resolved. A silenced
alert reopens when its time has come. Small changes that add up (`small_changes`) and broken commits
(`broken_commits`) have alerts of their own.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, QuerySet

from orchestrator.accounts.models import Team
from orchestrator.alerts.broken_commits import close_repaired_alerts, raise_broken_alerts
from orchestrator.alerts.models import ALERT_ENDED, Alert, AlertKind, AlertState
from orchestrator.alerts.recovery import find_fix
from orchestrator.alerts.small_changes import raise_small_change_alerts
from orchestrator.alerts.states import lock_alerts, set_alert_state
from orchestrator.results.models import CHANGE_REAL, ChangeKind, ChangePoint, ChangeState

#: States of a change point that raises an alert, now or later.
_CONFIRMED = Q(state=ChangeState.CONFIRMED)
_UNCONFIRMABLE = Q(
    state=ChangeState.OPEN, final=True, kind=ChangeKind.ALERT, confirmed_change=None, seen=True
)
_OVER = (ChangeState.REFUTED, ChangeState.DISMISSED, ChangeState.SUPERSEDED)


def apply_alert_rules(now: datetime) -> None:
    """Raise due alerts, resolve refuted or fixed ones, and reopen those whose silence ended.

    It may run twice.
    """
    due = _load_due().values_list("series__benchmark__project__team", flat=True)
    for team in set(due.order_by()):
        raise_alerts(team, now)
    raise_small_change_alerts(now)
    raise_broken_alerts(now)
    close_repaired_alerts(now)
    _end_what_is_over(now)
    _resolve_fixed_alerts(now)
    _wake(now)


def raise_alerts(team: int, now: datetime) -> None:
    """Raise the alerts of a team. An open alert takes in new change points that belong to it."""
    with transaction.atomic():
        # One at a time: two would raise the same alert.
        Team.objects.select_for_update(no_key=True).get(pk=team)
        rows = (
            _load_due()
            .filter(series__benchmark__project__team=team)
            .select_related("series__benchmark", "before", "commit")
        )
        for row in rows.order_by("found_at", "pk"):
            alert = _find_alert(row) or _create_alert(team, row, now)
            alert.change_points.add(row)
            if alert.change_point is None or abs(row.change) > abs(alert.change_point.change):
                alert.change_point = row
            alert.confirmed = alert.confirmed or row.state == ChangeState.CONFIRMED
            # Change only these fields: a member may be changing the others.
            alert.save(update_fields=["change_point", "confirmed"])


def _load_due() -> QuerySet[ChangePoint]:
    rows = ChangePoint.objects.filter(_CONFIRMED | _UNCONFIRMABLE, regressed=True, recent=True)
    rows = rows.filter(series__benchmark__deleted_at=None)
    return rows.exclude(alerts__kind=AlertKind.REGRESSION)


def _find_alert(row: ChangePoint) -> Alert | None:
    """Return the alert of the same confirmation run, or of overlapping commits on the same host."""
    same = Q(
        change_points__before__position__lt=row.commit.position,
        change_points__commit__position__gt=row.before.position,
    )
    if row.run_id is not None:
        same |= Q(change_points__run=row.run_id)
    alerts = Alert.objects.filter(
        same,
        kind=AlertKind.REGRESSION,
        change_points__series__benchmark=row.series.benchmark_id,
        change_points__series__host=row.series.host_id,
    ).exclude(state__in=ALERT_ENDED)
    return alerts.select_related("change_point").order_by("pk").first()


def _create_alert(team: int, row: ChangePoint, now: datetime) -> Alert:
    return Alert.objects.create(
        team_id=team,
        benchmark=row.series.benchmark,
        change_point=row,
        confirmed=row.state == ChangeState.CONFIRMED,
        raised_at=now,
        changed_at=now,
    )


def _end_what_is_over(now: datetime) -> None:
    """Resolve alerts whose change points were all refuted, dismissed or superseded."""
    left = ChangePoint.objects.exclude(state__in=_OVER)
    over = (
        Alert.objects.exclude(kind=AlertKind.BROKEN)
        .exclude(state__in=ALERT_ENDED)
        .exclude(change_points__in=left)
    )
    with transaction.atomic():
        for alert in lock_alerts(over):
            text = "resolved: none of its change points was confirmed"
            set_alert_state(alert, AlertState.RESOLVED, text, now)


def _resolve_fixed_alerts(now: datetime) -> None:
    """Resolve each fixed alert once: one that a member opens again stays open."""
    later = Q(
        change_points__series__change_points__regressed=False,
        change_points__series__change_points__commit__position__gt=F(
            "change_points__commit__position"
        ),
        change_points__series__change_points__state__in=[ChangeState.OPEN, *CHANGE_REAL],
    )
    todo = Alert.objects.exclude(state__in=ALERT_ENDED).filter(later, fixed_by=None)
    with transaction.atomic():
        for alert in lock_alerts(todo):
            fix = find_fix(alert)
            if fix is None or not fix.sure:
                continue
            alert.fixed_by = fix.commit
            text = f"resolved: fixed by {fix.commit.short_sha} {fix.commit.subject}"
            set_alert_state(alert, AlertState.RESOLVED, text, now)


def _wake(now: datetime) -> None:
    with transaction.atomic():
        due = Alert.objects.filter(state=AlertState.SILENCED, silenced_until__lte=now)
        for alert in lock_alerts(due):
            set_alert_state(alert, AlertState.OPEN, "reopened: the silence has ended", now)
