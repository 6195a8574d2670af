"""Changes of the state of alerts by Pitwall itself."""

from datetime import datetime

from django.db.models import QuerySet

from orchestrator.alerts.log import log_action
from orchestrator.alerts.models import ALERT_ENDED, Alert, AlertState


def lock_alerts(rows: QuerySet[Alert]) -> QuerySet[Alert]:
    """Return locked rows without those that a member is changing, which follow later."""
    own = Alert.objects.filter(pk__in=list(rows.order_by().values_list("pk", flat=True).distinct()))
    return own.exclude(state__in=ALERT_ENDED).select_for_update(skip_locked=True)


def set_alert_state(alert: Alert, state: AlertState, text: str, now: datetime) -> None:
    """Change the state. The reason becomes the note, unless a member wrote one."""
    alert.state, alert.silenced_until = state, None
    alert.changed_at, alert.changed_by = now, None
    if state == AlertState.RESOLVED:
        alert.note = alert.note or f"{text} (automatically)"
    log_action(alert, text, at=now)
    alert.save()
