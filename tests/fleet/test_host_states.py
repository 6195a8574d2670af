"""Who holds a host back, who lets it go, and what no look at it may undo."""

import pytest

from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.core.errors import (
    ConflictError,
    HostKeyMismatchError,
    HostSetupError,
    LoginRefusedError,
    NotFoundError,
    PermissionRefusedError,
    UnreachableError,
)
from orchestrator.fleet.host_settings import (
    put_in_maintenance,
    quarantine,
    release_host,
    retire_host,
)
from orchestrator.fleet.models import HELD, Host, HostState
from orchestrator.fleet.selectors import load_usable_hosts
from orchestrator.fleet.services import (
    confirm_host_key,
    record_host_error,
    record_host_seen,
    record_snapshot,
    remove_host,
)
from orchestrator.transport.keys import generate_key
from tests.support.factories import Personas, add_member


def _put(host: Host, state: str) -> Host:
    Host.objects.filter(pk=host.pk).update(state=state, message="why")
    host.refresh_from_db()
    return host


def _now(host: Host) -> tuple[str, str]:
    host.refresh_from_db()
    return host.state, host.message


def _last_audit() -> tuple[str, str | None, str]:
    entry = AuditEntry.objects.latest("at")
    return entry.action, entry.actor and entry.actor.get_username(), entry.subject


def test_a_member_drains_and_releases_a_host(host: Host, personas: Personas) -> None:
    carol = add_member(personas.alice, "carol", Role.MEMBER)
    put_in_maintenance(member=carol, host_id=host.pk, reason="new fan")
    assert _now(host) == ("maintenance", "carol: new fan")
    assert _last_audit() == ("host.maintenance", "carol", "here: new fan")
    assert load_usable_hosts([host.team_id]) == []

    release_host(member=carol, host_id=host.pk)
    assert _now(host) == ("ready", "")
    assert _last_audit() == ("host.released", "carol", "here")
    assert [each.name for each in load_usable_hosts([host.team_id])] == ["here"]


@pytest.mark.parametrize("service", [put_in_maintenance, release_host, retire_host])
def test_viewers_are_refused_and_strangers_find_no_host(
    service: object, host: Host, personas: Personas
) -> None:
    with pytest.raises(PermissionRefusedError):
        service(member=personas.bob, host_id=host.pk)  # type: ignore[operator]
    with pytest.raises(NotFoundError):
        service(member=personas.mallory, host_id=host.pk)  # type: ignore[operator]
    assert _now(host) == ("ready", "")


def test_only_admins_retire_and_restore_a_host(host: Host, personas: Personas) -> None:
    carol = add_member(personas.alice, "carol", Role.MEMBER)
    with pytest.raises(PermissionRefusedError):
        retire_host(member=carol, host_id=host.pk)
    retire_host(member=personas.alice, host_id=host.pk)
    assert _now(host)[0] == "retired"
    with pytest.raises(PermissionRefusedError):
        release_host(member=carol, host_id=host.pk)
    release_host(member=personas.alice, host_id=host.pk)
    assert _now(host) == ("ready", "")


@pytest.mark.parametrize(
    ("state", "service", "words"),
    [
        (
            "ready",
            release_host,
            "the host here is ready; only a host that is in maintenance or quarantined",
        ),
        (
            "unconfirmed",
            put_in_maintenance,
            "the host here is not confirmed; only a host that is ready or",
        ),
        ("retired", put_in_maintenance, "the host here is retired; only a host that is ready or"),
        (
            "retired",
            retire_host,
            "the host here is retired; only a host that is not confirmed or ready or",
        ),
    ],
)
def test_an_invalid_transition_is_reported(
    state: str, service: object, words: str, host: Host, personas: Personas
) -> None:
    _put(host, state)
    with pytest.raises(ConflictError) as caught:
        service(member=personas.alice, host_id=host.pk)  # type: ignore[operator]
    assert str(caught.value).startswith(words)
    assert _now(host)[0] == state


def test_a_host_without_a_confirmed_key_is_not_released(host: Host, personas: Personas) -> None:
    Host.objects.filter(pk=host.pk).update(transport="ssh", state="retired")
    with pytest.raises(ConflictError, match="the key of here is not confirmed yet"):
        release_host(member=personas.alice, host_id=host.pk)


@pytest.mark.parametrize(("state", "done"), [("ready", True), ("unreachable", True)])
def test_pitwall_quarantines_usable_hosts(state: str, done: bool, host: Host) -> None:
    assert quarantine(host=_put(host, state), reason="slower than it was") is done
    assert _now(host) == ("quarantined", "slower than it was")
    assert _last_audit() == ("host.quarantined", None, "here: slower than it was")


@pytest.mark.parametrize("state", sorted(HELD - {HostState.EXTERNAL}))
def test_held_hosts_are_not_quarantined(state: str, host: Host) -> None:
    assert not quarantine(host=_put(host, state), reason="slower than it was")
    assert _now(host) == (state, "why")


@pytest.mark.parametrize("state", sorted(HELD - {HostState.EXTERNAL}))
def test_a_poll_of_a_held_host_does_not_change_its_state(state: str, host: Host) -> None:
    _put(host, state)
    record_host_seen(host=host)
    record_snapshot(host=host, facts={})
    record_host_error(host=host, error=UnreachableError("no route"))
    record_host_error(host=host, error=HostKeyMismatchError("another key"))
    assert _now(host) == (state, "why")
    assert host.last_seen_at is not None


def test_an_unreachable_host_gets_no_job_until_it_answers(host: Host) -> None:
    record_host_error(host=host, error=UnreachableError("no route to here"))
    assert _now(host) == ("unreachable", "no route to here")
    since = host.unreachable_since
    assert load_usable_hosts([host.team_id]) == []

    record_host_error(host=host, error=UnreachableError("still no route"))
    assert _now(host) == ("unreachable", "still no route")
    assert host.unreachable_since == since

    record_host_seen(host=host)
    assert _now(host) == ("ready", "")
    assert [each.id for each in load_usable_hosts([host.team_id])] == [host.pk]
    assert host.unreachable_since is None


@pytest.mark.parametrize("error", [HostKeyMismatchError, LoginRefusedError])
def test_a_host_that_only_a_person_can_repair_is_quarantined(
    error: type[HostKeyMismatchError], host: Host
) -> None:
    record_host_error(host=host, error=error("it is another one"))
    assert _now(host) == ("quarantined", "it is another one")


def test_a_host_that_lacks_something_for_one_job_stays_ready(host: Host) -> None:
    record_host_error(host=host, error=HostSetupError("no compiler"))
    assert _now(host) == ("ready", "no compiler")


@pytest.mark.parametrize(
    ("state", "then"),
    [
        ("unconfirmed", "ready"),
        ("unreachable", "ready"),
        ("maintenance", "maintenance"),
        ("quarantined", "quarantined"),
        ("retired", "retired"),
    ],
)
def test_a_confirmed_key_releases_only_those_that_waited_for_it(
    state: str, then: str, host: Host, personas: Personas
) -> None:
    _put(host, state)
    line = " ".join(generate_key().public_openssh.split()[:2])
    confirmed = confirm_host_key(member=personas.alice, host_id=host.pk, host_key=line)
    assert (confirmed.state, confirmed.host_key) == (then, line)


def test_a_host_without_measurements_is_removed(host: Host, personas: Personas) -> None:
    record_snapshot(host=host, facts={"fingerprint": "a"})
    remove_host(member=personas.alice, host_id=host.pk)
    assert not Host.objects.exists()


def test_usable_hosts_belong_to_the_given_teams(host: Host, personas: Personas) -> None:
    Host.objects.update(tags=["fast"], open_hours="sat-sun", timezone="Europe/Vienna")
    (entry,) = load_usable_hosts([host.team_id, personas.mallory.team.pk])
    assert (entry.id, entry.team_id, entry.profile_id) == (host.pk, host.team_id, host.profile_id)
    assert (entry.tags, entry.open_hours, entry.timezone) == (
        ("fast",),
        "sat-sun",
        "Europe/Vienna",
    )
    assert {window.day for window in entry.hours.windows} == {5, 6}
    assert load_usable_hosts([personas.mallory.team.pk]) == []


def test_every_state_is_either_held_or_usable() -> None:
    assert set(HostState) - set(HELD) == {HostState.READY, HostState.UNREACHABLE}
