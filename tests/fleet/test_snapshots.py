"""What a host says of itself: it fills the profile, and a change of it begins a new epoch."""

from typing import Any

import pytest

from orchestrator.fleet.facts import compare_facts, extract_profile_fields, find_contradictions
from orchestrator.fleet.models import HardwareProfile, Host, HostChange
from orchestrator.fleet.selectors import load_host_changes
from orchestrator.fleet.services import record_snapshot, save_profile
from tests.support.factories import Personas

FACTS: dict[str, Any] = {
    "cpu_model": "Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz",
    "cores": 4,
    "threads": 8,
    "clock_base_mhz": 1600.0,
    "clock_min_mhz": 400.0,
    "clock_max_mhz": 4100.4,
    "memory_bytes": 16_500_000_000,
    "kernel": "6.1.0-30",
    "governor": "powersave",
    "os_name": "Debian GNU/Linux",
    "os_version": "12",
}


def _facts(**changes: Any) -> dict[str, Any]:
    return {**FACTS, **changes}


def test_a_changed_fact_begins_an_epoch_that_names_the_change(host: Host) -> None:
    record_snapshot(host=host, facts=FACTS)
    second = record_snapshot(host=host, facts=_facts(kernel="6.1.0-31", governor="performance"))
    (change,) = load_host_changes(host)
    assert change.changed == {
        "kernel": ["6.1.0-30", "6.1.0-31"],
        "governor": ["powersave", "performance"],
    }
    assert (change.snapshot, change.at) == (second, second.taken_at)


def test_the_same_machine_stays_in_its_epoch(host: Host) -> None:
    for facts in (FACTS, FACTS, {**FACTS, "load": [1.0, 1.0, 1.0]}):
        record_snapshot(host=host, facts=facts)
    assert not HostChange.objects.exists()


def test_a_fact_that_an_agent_reports_for_the_first_time_is_not_a_change(host: Host) -> None:
    record_snapshot(host=host, facts={**FACTS, "static": {"kernel": "6.1.0-30"}})
    static = {"kernel": "6.1.0-30", "microcode": "0xf8"}
    record_snapshot(host=host, facts=_facts(static=static))
    assert not HostChange.objects.exists()


def test_a_fact_that_was_unknown_in_between_is_compared_with_its_last_value(host: Host) -> None:
    """Such as the version of a runtime that did not answer in time."""
    for version in ("20.1.0", None, None, "20.2.0", "20.2.0"):
        record_snapshot(host=host, facts={**FACTS, "static": {"node_version": version}})
    (change,) = load_host_changes(host)
    assert change.changed == {"node_version": ["20.1.0", "20.2.0"]}


def test_facts_that_an_agent_no_longer_reports_are_not_kept(host: Host) -> None:
    for number in range(3):
        snapshot = record_snapshot(host=host, facts={"static": {f"fact {number}": "1"}})
    assert snapshot.facts["static"] == {"fact 2": "1", "environment": ""}


def test_another_tuning_begins_an_epoch(host: Host) -> None:
    facts = {**FACTS, "static": {"kernel": "6.1.0-30", "turbo": "on", "governor": "powersave"}}
    first = record_snapshot(host=host, facts=facts)
    host.tuning = {"turbo": "off", "governor": "powersave"}
    second = record_snapshot(host=host, facts=facts)
    (change,) = load_host_changes(host)
    assert change.changed == {"turbo": ["on", "off"]}
    assert second.facts["tuning"] == host.tuning
    assert first.fingerprint != second.fingerprint


def test_tuning_to_the_settings_that_the_host_has_is_not_a_change(host: Host) -> None:
    facts = {**FACTS, "static": {"turbo": "off"}}
    first = record_snapshot(host=host, facts=facts)
    host.tuning = {"turbo": "off"}
    second = record_snapshot(host=host, facts=facts)
    assert not HostChange.objects.exists()
    assert first.fingerprint == second.fingerprint


def test_each_change_is_relative_to_the_previous_snapshot(host: Host) -> None:
    for kernel in ("1", "2", "1"):
        record_snapshot(host=host, facts=_facts(kernel=kernel))
    assert [change.changed["kernel"] for change in load_host_changes(host)] == [
        ["1", "2"],
        ["2", "1"],
    ]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"kernel": "1"}, {"kernel": "2"}, {"kernel": ["1", "2"]}),
        ({"kernel": "1"}, {"kernel": None}, {}),
        ({"kernel": None}, {"kernel": "2"}, {}),
        ({}, {"kernel": "2"}, {}),
        ({"python": "3.9"}, {"python": "3.11"}, {}),
        ({"static": {"smt": "on"}}, {"static": {"smt": "off"}}, {"smt": ["on", "off"]}),
        ({"static": {"kernel": "1"}, "kernel": "1"}, {"kernel": "2"}, {"kernel": ["1", "2"]}),
        ({"static": {"smt": "on"}}, {"static": {"smt": "on"}, "kernel": "2"}, {}),
        ({"static": {}}, {"static": {"smt": "on"}}, {}),
    ],
)  # fmt: skip
def test_changed_facts_are_found(
    before: dict[str, Any], after: dict[str, Any], changed: dict[str, Any]
) -> None:
    assert compare_facts(before, after) == changed


def test_facts_fill_only_empty_fields_of_the_profile(host: Host, personas: Personas) -> None:
    save_profile(member=personas.alice, slug="any", name="Any machine", cores=2, os="Linux")
    host.refresh_from_db()
    record_snapshot(host=host, facts=FACTS)
    profile = HardwareProfile.objects.get()
    assert profile.cpu_model == "Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz"
    assert (profile.cores, profile.threads, profile.os) == (2, 8, "Linux")
    assert (profile.base_clock_mhz, profile.boost_clock_mhz) == (1600, 4100)
    assert profile.memory_bytes == 16_500_000_000


def test_the_second_host_of_a_profile_changes_nothing(host: Host) -> None:
    record_snapshot(host=host, facts=FACTS)
    record_snapshot(host=host, facts=_facts(cpu_model="AMD EPYC 9654", cores=96))
    profile = HardwareProfile.objects.get()
    assert (profile.cpu_model, profile.cores) == (FACTS["cpu_model"], 4)


def test_invalid_facts_are_not_copied_to_the_profile(host: Host) -> None:
    record_snapshot(host=host, facts={"cores": "many", "threads": -1, "memory_bytes": 2**80})
    profile = HardwareProfile.objects.get()
    assert (profile.cores, profile.threads, profile.memory_bytes) == (None, None, None)


def test_the_lowest_clock_of_a_cpu_is_not_its_base_clock() -> None:
    assert "base_clock_mhz" not in extract_profile_fields({"clock_min_mhz": 400.0})


@pytest.mark.parametrize(
    ("profile", "found"),
    [
        ({"cpu_model": "Intel Core i5-8365U"}, []),
        ({"cpu_model": "intel core i5"}, []),
        ({"cpu_model": "Apple M2"}, ["cpu_model"]),
        ({"memory_bytes": 16 * 2**30}, []),
        ({"memory_bytes": 32 * 2**30}, ["memory_bytes"]),
        ({"os": "Linux"}, []),
        ({"os": "Debian 13"}, ["os"]),
        ({"cores": 8, "threads": 8}, ["cores"]),
        ({"cores": None, "cpu_model": "", "os": ""}, []),
        ({"boost_clock_mhz": 4100}, []),
        ({"boost_clock_mhz": 4800}, ["boost_clock_mhz"]),
    ],
)
def test_differences_between_host_and_profile_are_reported(
    profile: dict[str, Any], found: list[str]
) -> None:
    assert [each.field for each in find_contradictions(profile, FACTS)] == found
