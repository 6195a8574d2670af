"""Reservations of hosts: no new job starts on a host while somebody works on it.

A member makes one on the page of the host, in the API or with the command line. A user of the host
makes one there, with the command `reserve` of the agent; a job or a check reads it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.fleet import selectors
from orchestrator.fleet.models import UNUSABLE, Host

LONGEST = timedelta(days=7)
_MOST_REASON = 500


def reserve_host(*, member: Member, host_id: UUID, duration_s: float, reason: str = "") -> Host:
    """Let no new job start on the host for this time; a running one may end."""
    member.require(Role.MEMBER, to="reserve a host")
    host = selectors.load_host(member, host_id)
    if host.state in UNUSABLE:
        state = host.get_state_display().lower()
        raise ConflictError(f"the host {host} is {state}: no job uses it")
    if not 0 < duration_s <= LONGEST.total_seconds():
        raise InvalidRequestError(
            f"expected a time of up to {LONGEST.days} days", field="duration_s"
        )
    reason = reason.strip()
    if len(reason) > _MOST_REASON or "\0" in reason:
        raise InvalidRequestError(f"at most {_MOST_REASON} characters", field="reason")
    until = utc_now() + timedelta(seconds=duration_s)
    with transaction.atomic():
        _store(host, until=until, by=member.user.get_username(), reason=reason, seen_at=None)
        record_audit(member=member, action="host.reserved", subject=f"{host}: {reason}")
    return selectors.load_host(member, host_id)


def end_reservation(*, member: Member, host_id: UUID) -> Host:
    """End a reservation of any member; ConflictError if it was made on the host."""
    member.require(Role.MEMBER, to="end the reservation of a host")
    host = selectors.load_host(member, host_id)
    if is_reserved(host) and host.reservation_seen_at is not None:
        raise ConflictError(
            f"the reservation was made on {host}: end it there, with {host.work_dir}/reserve off"
        )
    with transaction.atomic():
        if is_reserved(host):
            record_audit(member=member, action="host.reservation_ended", subject=host)
        _clear(host)
    return selectors.load_host(member, host_id)


def record_reported(host: Host, reported: Mapping[str, Any] | None) -> str:
    """Store the reservation that a host reports; return its description, empty without one."""
    if reported is None:
        if host.reservation_seen_at is not None:
            _clear(host)
        return ""
    now = utc_now()
    left = min(timedelta(seconds=reported["left_s"]), LONGEST)
    _store(host, until=now + left, by=reported["by"], reason=reported["reason"], seen_at=now)
    host.refresh_from_db(fields=["reserved_until", "reserved_by", "reserved_for"])
    return describe_reservation(host)


def is_reserved(host: Host) -> bool:
    return host.reserved_until is not None and host.reserved_until > utc_now()


def describe_reservation(host: Host) -> str:
    """Return who reserved the host until when, and why; empty if nobody has."""
    if host.reserved_until is None or not is_reserved(host):
        return ""
    why = f": {host.reserved_for}" if host.reserved_for else ""
    until = f"{host.reserved_until:%Y-%m-%d %H:%M} UTC"
    return f"{host.name} is reserved by {host.reserved_by} until {until}{why}"


def _store(host: Host, *, until: datetime, by: str, reason: str, seen_at: datetime | None) -> None:
    Host.objects.filter(pk=host.pk).update(
        reserved_until=until,
        reserved_by=by[:200],
        reserved_for=reason[:_MOST_REASON],
        reservation_seen_at=seen_at,
    )


def _clear(host: Host) -> None:
    Host.objects.filter(pk=host.pk).update(
        reserved_until=None, reserved_by="", reserved_for="", reservation_seen_at=None
    )
