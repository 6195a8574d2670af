"""The clock of Pitwall: instants are aware datetimes in UTC."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current instant, aware, in UTC."""
    return datetime.now(UTC)
