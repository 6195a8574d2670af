"""Writes of alerts by people: looking at one, and what came of it."""

from uuid import UUID

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, User
from orchestrator.accounts.selectors import members_of
from orchestrator.accounts.services import record_audit
from orchestrator.alerts.models import ALERT_ENDED, Alert, AlertState
from orchestrator.alerts.selectors import alert_for
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.results.changes.change_points import dismiss
from orchestrator.results.models import ChangeState

MAX_NOTE = 2_000


def acknowledge(*, member: Member, alert_id: UUID, note: str = "") -> Alert:
    """Somebody has seen it and looks after it: the member, unless it is another's already."""
    with transaction.atomic():
        alert = _locked(member, alert_id, to="acknowledge an alert")
        if alert.state != AlertState.OPEN:
            raise ConflictError(f"this alert is {alert.state} already")
        alert.assignee = alert.assignee or member.actor
        return _changed(member, alert, AlertState.ACKNOWLEDGED, note)


def resolve(*, member: Member, alert_id: UUID, note: str) -> Alert:
    """It was looked after: fixed, or taken as it is. `note` says which."""
    with transaction.atomic():
        alert = _locked(member, alert_id, to="resolve an alert")
        if alert.state in ALERT_ENDED:
            raise ConflictError(f"this alert is {alert.state} already")
        return _changed(member, alert, AlertState.RESOLVED, _reason(note))


def dismiss_alert(*, member: Member, alert_id: UUID, reason: str) -> Alert:
    """It is none: the change points are dismissed with it, and raise no other one."""
    with transaction.atomic():
        alert = _locked(member, alert_id, to="dismiss an alert")
        if alert.state in ALERT_ENDED:
            raise ConflictError(f"this alert is {alert.state} already")
        for row in alert.change_points.exclude(
            state__in=[ChangeState.DISMISSED, ChangeState.SUPERSEDED]
        ):
            dismiss(member=member, change_id=row.pk, reason=_reason(reason))
        return _changed(member, alert, AlertState.DISMISSED, _reason(reason))


def reopen(*, member: Member, alert_id: UUID) -> Alert:
    """It is to be looked at again. What was dismissed stays so on the charts."""
    with transaction.atomic():
        alert = _locked(member, alert_id, to="reopen an alert")
        if alert.state == AlertState.OPEN:
            raise ConflictError("this alert is open already")
        return _changed(member, alert, AlertState.OPEN, alert.note)


def assign(*, member: Member, alert_id: UUID, username: str) -> Alert:
    """Who looks after it; an empty name: nobody."""
    with transaction.atomic():
        alert = _locked(member, alert_id, to="assign an alert")
        alert.assignee = _user(member, username) if username else None
        return _changed(member, alert, AlertState(alert.state), alert.note)


def _locked(member: Member, alert_id: UUID, *, to: str) -> Alert:
    member.require(Role.MEMBER, to=to)
    return Alert.objects.select_for_update().get(pk=alert_for(member, alert_id).pk)


def _changed(member: Member, alert: Alert, state: AlertState, note: str) -> Alert:
    alert.state, alert.note = state, note.strip()[:MAX_NOTE]
    alert.changed_at, alert.changed_by = utc_now(), member.actor
    alert.save()
    record_audit(member=member, action=f"alert.{state}", subject=alert.pk)
    return alert


def _reason(text: str) -> str:
    if not text.strip():
        raise InvalidRequestError("say why, so that others can follow", field="note")
    return text


def _user(member: Member, username: str) -> User:
    for each in members_of(member):
        if each.user.get_username() == username:
            return each.user
    raise InvalidRequestError(f"the team has no member {username}", field="assignee")
