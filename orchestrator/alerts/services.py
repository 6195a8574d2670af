"""Writes of alerts by members."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, User
from orchestrator.accounts.selectors import load_members
from orchestrator.accounts.services import record_audit
from orchestrator.alerts.log import log_action
from orchestrator.alerts.models import ALERT_ENDED, Alert, AlertKind, AlertState
from orchestrator.alerts.selectors import load_alert
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.regressions.change_points import dismiss, store_baseline
from orchestrator.results.models import ChangeState

MAX_NOTE = 2_000
LONGEST_SILENCE = timedelta(days=366)
_NOTHING = (ChangeState.REFUTED, ChangeState.DISMISSED, ChangeState.SUPERSEDED)
_OF_SERIES = ("series__benchmark__project", "series__case__benchmark__project")


def acknowledge(*, member: Member, alert_id: UUID, note: str = "") -> Alert:
    """Acknowledge an alert. The member becomes its owner unless it has one."""
    with transaction.atomic():
        alert = _lock_alert(member, alert_id, to="acknowledge an alert")
        if alert.state != AlertState.OPEN:
            raise ConflictError(f"this alert is already {alert.state}; reload the page")
        alert.assignee = alert.assignee or member.actor
        return _change_alert(member, alert, AlertState.ACKNOWLEDGED, note)


def confirm_alert(*, member: Member, alert_id: UUID, note: str = "") -> Alert:
    """Confirm that it is a real regression. The member becomes its owner unless it has one."""
    with transaction.atomic():
        alert = _lock_open_alert(member, alert_id, to="confirm an alert")
        if alert.state == AlertState.CONFIRMED:
            raise ConflictError("this alert is already confirmed; reload the page")
        alert.assignee = alert.assignee or member.actor
        return _change_alert(member, alert, AlertState.CONFIRMED, note)


def silence(*, member: Member, alert_id: UUID, until: datetime, note: str = "") -> Alert:
    """Silence an alert until `until`; then it reopens."""
    with transaction.atomic():
        alert = _lock_open_alert(member, alert_id, to="silence an alert")
        now = utc_now()
        if until <= now:
            raise InvalidRequestError("choose a day in the future", field="until")
        if until > now + LONGEST_SILENCE:
            raise InvalidRequestError(
                f"an alert can be silenced for at most {LONGEST_SILENCE.days} days", field="until"
            )
        alert.silenced_until = until
        return _change_alert(member, alert, AlertState.SILENCED, note)


def resolve(*, member: Member, alert_id: UUID, note: str) -> Alert:
    """Resolve an alert: fixed, or accepted. `note` says which."""
    with transaction.atomic():
        alert = _lock_open_alert(member, alert_id, to="resolve an alert")
        return _change_alert(member, alert, AlertState.RESOLVED, _check_reason(note))


def accept(*, member: Member, alert_id: UUID, reason: str) -> Alert:
    """Accept the new level: each history of the alert starts again where it shifted last."""
    with transaction.atomic():
        alert = _lock_open_alert(member, alert_id, to="accept a new baseline")
        if alert.kind == AlertKind.BROKEN:
            raise ConflictError("a broken commit has no level to accept: resolve or dismiss it")
        rows = alert.change_points.exclude(state__in=_NOTHING).order_by("commit__position")
        shifts = {row.series_id: row for row in rows.select_related("commit", *_OF_SERIES)}
        for row in shifts.values():
            store_baseline(
                member=member, commit=row.commit, reason=_check_reason(reason), series=row.series
            )
        return _change_alert(member, alert, AlertState.ACCEPTED, _check_reason(reason))


def dismiss_alert(*, member: Member, alert_id: UUID, reason: str) -> Alert:
    """Dismiss an alert that is no regression.

    Its change points are dismissed too and raise no other.
    """
    with transaction.atomic():
        alert = _lock_open_alert(member, alert_id, to="dismiss an alert")
        for row in alert.change_points.exclude(
            state__in=[ChangeState.DISMISSED, ChangeState.SUPERSEDED]
        ):
            dismiss(member=member, change_id=row.pk, reason=_check_reason(reason))
        return _change_alert(member, alert, AlertState.DISMISSED, _check_reason(reason))


def reopen(*, member: Member, alert_id: UUID) -> Alert:
    """Reopen an alert. Dismissed change points and new starts of histories stay."""
    with transaction.atomic():
        alert = _lock_alert(member, alert_id, to="reopen an alert")
        if alert.state == AlertState.OPEN:
            raise ConflictError("this alert is already open; reload the page")
        return _change_alert(member, alert, AlertState.OPEN, "")


def assign(*, member: Member, alert_id: UUID, username: str) -> Alert:
    """Set the owner; an empty name removes it."""
    with transaction.atomic():
        alert = _lock_alert(member, alert_id, to="assign an alert")
        alert.assignee = _load_user(member, username) if username else None
        log_text = f"assigned to {username or 'nobody'}"
        return _change_alert(member, alert, AlertState(alert.state), "", log_text=log_text)


def write_note(*, member: Member, alert_id: UUID, note: str) -> Alert:
    """Write a note for others; an empty one removes the note."""
    with transaction.atomic():
        alert = _lock_alert(member, alert_id, to="write a note")
        alert.note = note.strip()[:MAX_NOTE]
        log_text = f"note: {alert.note}" if alert.note else "note removed"
        return _change_alert(member, alert, AlertState(alert.state), "", log_text=log_text)


def _lock_alert(member: Member, alert_id: UUID, *, to: str) -> Alert:
    member.require(Role.MEMBER, to=to)
    return Alert.objects.select_for_update().get(pk=load_alert(member, alert_id).pk)


def _lock_open_alert(member: Member, alert_id: UUID, *, to: str) -> Alert:
    alert = _lock_alert(member, alert_id, to=to)
    if alert.state in ALERT_ENDED:
        raise ConflictError(f"this alert is already {alert.get_state_display().lower()}")
    return alert


def _change_alert(
    member: Member, alert: Alert, state: AlertState, note: str, *, log_text: str = ""
) -> Alert:
    """Change an alert.

    `log_text` is the text for the log; the default is the new state with the note.
    """
    alert.state, alert.note = state, note.strip()[:MAX_NOTE] or alert.note
    if state != AlertState.SILENCED:
        alert.silenced_until = None
    alert.changed_at, alert.changed_by = utc_now(), member.actor
    text = log_text or ": ".join(filter(None, [_format_change(alert), note.strip()[:MAX_NOTE]]))
    log_action(alert, text, at=alert.changed_at, by=member.user.get_username())
    alert.save()
    record_audit(member=member, action=f"alert.{state}", subject=alert.pk)
    return alert


def _format_change(alert: Alert) -> str:
    until = f" until {alert.silenced_until:%Y-%m-%d %H:%M} UTC" if alert.silenced_until else ""
    return f"{AlertState(alert.state).label.lower()}{until}"


def _check_reason(text: str) -> str:
    if not text.strip():
        raise InvalidRequestError("enter the reason, for the other members", field="note")
    return text


def _load_user(member: Member, username: str) -> User:
    for each in load_members(member):
        if each.user.get_username() == username:
            return each.user
    problem = f"the team has no member {username}; the page Members lists all"
    raise InvalidRequestError(problem, field="assignee")
