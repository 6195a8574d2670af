"""What was done about an alert, line by line."""

from datetime import datetime

from orchestrator.alerts.models import Alert

MAX_LINES = 100


def note_done(alert: Alert, text: str, *, at: datetime, by: str = "") -> None:
    """Adds a line; the caller saves the alert. `by` is empty for what Pitwall does by itself."""
    alert.log = [*alert.log, {"at": at.isoformat(), "by": by, "text": text}][-MAX_LINES:]
