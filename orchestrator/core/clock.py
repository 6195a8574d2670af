"""Time, in one place: aware UTC for instants."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current instant, aware, in UTC."""
    return datetime.now(UTC)
