"""What a host says of itself: it fills the profile, and a change of it begins a new epoch."""

from typing import Any

import pytest

from orchestrator.fleet.facts import compare_facts, extract_profile_fields, find_contradictions
from orchestrator.fleet.models import HardwareProfile, Host, HostChange
from orchestrator.fleet.selectors import load_host_changes
from orchestrator.fleet.services import record_snapshot, save_profile
from tests.support.factories import Personas

FACTS: dict[str, Any] = {
    "fingerprint": "a" * 64,
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
    return {**FACTS, "fingerprint": "b" * 64, **changes}


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


def test_another_fingerprint_of_the_same_facts_is_not_a_change(host: Host) -> None:
    record_snapshot(host=host, facts=FACTS)
    # The agent of today rounds what it calls static, and says more of it.
    static = {"kernel": "6.1.0-30", "memory_bytes": 16_500_000_001, "microcode": "0xf8"}
    record_snapshot(host=host, facts=_facts(static=static))
    assert not HostChange.objects.exists()


def test_each_change_is_relative_to_the_previous_snapshot(host: Host) -> None:
    for fingerprint, kernel in (("a", "1"), ("b", "2"), ("a", "1")):
        record_snapshot(host=host, facts=_facts(fingerprint=fingerprint, kernel=kernel))
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
