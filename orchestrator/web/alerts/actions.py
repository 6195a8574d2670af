"""The actions on alerts that forms offer."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.alerts import services
from orchestrator.core.errors import InvalidRequestError

#: Action → its label.
ACTIONS = (
    ("acknowledge", "Acknowledge"),
    ("confirm", "Confirm"),
    ("accept", "Accept as the new baseline"),
    ("dismiss", "Dismiss"),
    ("silence", "Silence"),
    ("resolve", "Resolve"),
    ("reopen", "Reopen"),
    ("assign", "Assign"),
    ("note", "Add comment"),
)


def apply_action(member: Member, alert_id: UUID, form: Mapping[str, str]) -> None:
    """Apply the action.

    `do` in the form is one of ACTIONS; `note`, `until`, `assignee` are parameters.
    """
    action, note = form.get("do", ""), form.get("note", "")
    match action:
        case "acknowledge":
            services.acknowledge(member=member, alert_id=alert_id, note=note)
        case "confirm":
            services.confirm_alert(member=member, alert_id=alert_id, note=note)
        case "accept":
            services.accept(member=member, alert_id=alert_id, reason=note)
        case "dismiss":
            services.dismiss_alert(member=member, alert_id=alert_id, reason=note)
        case "silence":
            until = _parse_day(form.get("until", ""))
            services.silence(member=member, alert_id=alert_id, until=until, note=note)
        case "resolve":
            services.resolve(member=member, alert_id=alert_id, note=note)
        case "reopen":
            services.reopen(member=member, alert_id=alert_id)
        case "assign":
            name = form.get("assignee", "")
            services.assign(member=member, alert_id=alert_id, username=name)
        case "note":
            services.write_note(member=member, alert_id=alert_id, note=note)
        case _:
            raise InvalidRequestError("choose an action", field="do")


def _parse_day(text: str) -> datetime:
    """Return the start of a day, UTC."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise InvalidRequestError("choose the end date of the silence", field="until") from error
