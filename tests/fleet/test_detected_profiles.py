"""Profiles that are created with a host: the first facts name them, or select a known one."""

from typing import Any

import pytest

from orchestrator.fleet.facts import describe_machine_kind, is_same_machine_kind
from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.fleet.services import (
    NewHost,
    add_credential,
    add_local_host,
    enter_host,
    record_snapshot,
    remove_host,
    save_profile,
)
from orchestrator.runs.services import RunRequest, create_run
from tests.fleet.test_snapshots import FACTS
from tests.support.factories import Personas
from tests.support.world import World

NAME = "Intel Core i5-8365U, 8 CPUs, 16 GiB"


@pytest.fixture
def host(personas: Personas) -> Host:
    """A host that was added without a profile, and has reported nothing yet."""
    return _enter(personas, "rack-1")


def _enter(personas: Personas, name: str) -> Host:
    key = add_credential(member=personas.alice, name=f"key of {name}")
    new = NewHost(name=name, address="192.0.2.1", port=22, login="bench", credential_id=key.pk)
    return enter_host(member=personas.alice, new=new)


def _facts(**changes: Any) -> dict[str, Any]:
    return {**FACTS, **changes}


def test_the_first_facts_of_a_host_create_its_profile(host: Host) -> None:
    assert host.profile.is_pending
    record_snapshot(host=host, facts=FACTS)
    profile = HardwareProfile.objects.get()

    assert (profile.name, profile.is_pending) == (NAME, False)
    assert profile.slug == "intel-core-i5-8365u-8-cpus-16-gib"
    assert (profile.cores, profile.threads, profile.memory_bytes) == (4, 8, 16_500_000_000)
    assert profile.os == "Debian GNU/Linux 12"


def test_a_host_without_facts_keeps_its_pending_profile(host: Host) -> None:
    record_snapshot(host=host, facts={"fingerprint": "a" * 64})
    assert HardwareProfile.objects.get().is_pending
    record_snapshot(host=host, facts=FACTS)
    assert HardwareProfile.objects.get().name == NAME


def test_a_second_host_of_the_same_kind_gets_the_known_profile(
    host: Host, personas: Personas
) -> None:
    record_snapshot(host=host, facts=FACTS)
    second = _enter(personas, "rack-2")
    record_snapshot(host=second, facts=_facts(memory_bytes=16_400_000_000))
    third = _enter(personas, "rack-3")
    record_snapshot(host=third, facts=_facts(memory_bytes=32_900_000_000))

    names = dict(Host.objects.values_list("name", "profile__name"))
    other = "Intel Core i5-8365U, 8 CPUs, 31 GiB"
    assert names == {"rack-1": NAME, "rack-2": NAME, "rack-3": other}
    assert not HardwareProfile.objects.filter(is_pending=True).exists()
    # The row that the caller holds is usable for the next snapshot.
    record_snapshot(host=second, facts=FACTS)


def test_profiles_of_another_team_are_not_used(host: Host, personas: Personas) -> None:
    save_profile(
        member=personas.mallory,
        slug="same",
        name="Same",
        cpu_model=FACTS["cpu_model"],
        threads=8,
        memory_bytes=16_500_000_000,
    )
    record_snapshot(host=host, facts=FACTS)
    host.refresh_from_db()
    assert (host.profile.name, host.profile.team) == (NAME, personas.alice.team)


def test_a_name_given_by_a_user_is_kept(host: Host, personas: Personas) -> None:
    save_profile(member=personas.alice, slug=host.profile.slug, name="Rack A")
    host.refresh_from_db()
    record_snapshot(host=host, facts=FACTS)
    profile = HardwareProfile.objects.get()
    assert (profile.name, profile.slug, profile.threads) == ("Rack A", "rack-1", 8)


def test_a_pending_profile_that_a_run_names_stays(world: World) -> None:
    profile = world.host.profile
    record_snapshot(host=world.host, facts=FACTS)
    local = add_local_host(member=world.alice, name="second", python="python3")
    create_run(
        member=world.alice,
        request=RunRequest(
            benchmark="hello",
            baseline=world.shas[0],
            contenders=(world.shas[1],),
            hosts=(f"profile:{local.profile.slug}",),
        ),
    )
    record_snapshot(host=local, facts=FACTS)
    local.refresh_from_db()
    assert local.profile != profile
    assert (local.profile.is_pending, local.profile.name) == (False, NAME)


def test_the_pending_profile_of_a_removed_host_is_removed(host: Host, personas: Personas) -> None:
    remove_host(member=personas.alice, host_id=host.pk)
    assert not HardwareProfile.objects.exists()
    known = _enter(personas, "rack-2")
    record_snapshot(host=known, facts=FACTS)
    remove_host(member=personas.alice, host_id=known.pk)
    assert HardwareProfile.objects.get().name == NAME


def test_a_local_host_that_is_added_again_keeps_its_profile(personas: Personas) -> None:
    host = add_local_host(member=personas.alice, name="here", python="python3")
    record_snapshot(host=host, facts=FACTS)
    again = add_local_host(member=personas.alice, name="here", python="python3")
    assert again.profile.name == NAME
    assert HardwareProfile.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"cpu_model": "AMD EPYC 7763 64-Core Processor", "threads": 1}, "AMD EPYC 7763, 1 CPU"),
        ({"memory_bytes": 900_000_000}, "1 GiB"),
        (
            {"cpu_model": "Apple M2", "cores": 8, "memory_bytes": 16 * 2**30},
            "Apple M2, 8 CPUs, 16 GiB",
        ),
        ({}, ""),
    ],
)
def test_a_profile_is_named_by_its_facts(fields: dict[str, Any], name: str) -> None:
    assert describe_machine_kind(fields) == name


@pytest.mark.parametrize(
    ("profile", "same"),
    [
        ({"cpu_model": "Intel i5", "threads": 8, "memory_bytes": 16e9, "os": "Debian 12"}, True),
        ({"cpu_model": "Intel i5", "threads": 8, "memory_bytes": 16e9, "os": "Fedora 41"}, False),
        ({"cpu_model": "Intel i5", "threads": 4, "memory_bytes": 16e9}, False),
        ({"cpu_model": "Intel i5", "threads": 8, "memory_bytes": 8e9}, False),
        ({"cpu_model": "Intel i5", "threads": 8}, False),
        ({"cpu_model": "", "threads": 8, "memory_bytes": 16e9}, False),
    ],
)
def test_a_profile_matches_only_what_it_describes(profile: dict[str, Any], same: bool) -> None:
    fields = {"cpu_model": "Intel i5", "threads": 8, "memory_bytes": 16.2e9, "os": "Debian 12"}
    assert is_same_machine_kind(profile, fields) == same
