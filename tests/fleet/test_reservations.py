"""Reservations that were made on a host, and when they let a job start."""

from datetime import timedelta

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError
from orchestrator.fleet.models import Host
from orchestrator.fleet.reservations import (
    describe_reservation,
    is_reserved,
    record_reported,
    reserve_host,
)
from orchestrator.fleet.selectors import load_usable_hosts
from tests.support.factories import Personas, make_local_host

REPORTED = {"left_s": 7200.0, "by": "ada", "reason": "a leak"}


@pytest.fixture
def host(personas: Personas) -> Host:
    return make_local_host(personas.alice)


def is_usable(host: Host) -> bool:
    return host.pk in {each.id for each in load_usable_hosts([host.team_id])}


def test_a_reported_reservation_is_asked_for_again_after_a_minute(host: Host) -> None:
    assert is_usable(host)
    reason = record_reported(host, REPORTED)
    assert reason.startswith(f"{host} is reserved by ada until ")
    assert reason.endswith(" UTC: a leak")
    assert not is_usable(host)
    Host.objects.update(reservation_seen_at=utc_now() - timedelta(seconds=61))
    assert is_usable(host), "it may have ended on the host"
    host.refresh_from_db()
    assert record_reported(host, None) == ""
    host.refresh_from_db()
    assert not is_reserved(host)


def test_a_host_cannot_reserve_itself_without_limit(host: Host) -> None:
    record_reported(host, {**REPORTED, "left_s": 1e9})
    host.refresh_from_db()
    assert host.reserved_until is not None
    assert host.reserved_until < utc_now() + timedelta(days=7, minutes=1)


def test_a_reservation_of_a_member_lasts_whatever_the_host_reports(
    host: Host, personas: Personas
) -> None:
    reserve_host(member=personas.alice, host_id=host.pk, duration_s=60)
    host.refresh_from_db()
    assert record_reported(host, None) == ""
    host.refresh_from_db()
    assert describe_reservation(host).startswith(f"{host} is reserved by alice until ")
    assert not is_usable(host)
    Host.objects.update(reserved_until=utc_now() - timedelta(seconds=1))
    host.refresh_from_db()
    assert describe_reservation(host) == ""
    assert is_usable(host)


def test_a_host_that_no_job_uses_cannot_be_reserved(host: Host, personas: Personas) -> None:
    Host.objects.update(state="retired")
    with pytest.raises(ConflictError, match="is retired: no job uses it"):
        reserve_host(member=personas.alice, host_id=host.pk, duration_s=60)
