"""The log of an alert: one line per action."""

from datetime import datetime

from orchestrator.alerts.models import Alert

MAX_LINES = 100


def log_action(alert: Alert, text: str, *, at: datetime, by: str = "") -> None:
    """Add a line; the caller saves the alert. `by` is empty for actions of Pitwall itself."""
    alert.log = [*alert.log, {"at": at.isoformat(), "by": by, "text": text}][-MAX_LINES:]
