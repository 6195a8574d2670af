"""What machines that we do not have show of themselves, by golden files of /sys and /proc."""

from pathlib import Path

import pytest

from agents.hostagent.platform.counters import Throttling
from agents.hostagent.platform.linux.arm_models import parse_arm_model
from agents.hostagent.platform.linux.counters import explain_unknown, read_counters
from agents.hostagent.platform.linux.facts import read_facts
from agents.hostagent.platform.linux.kernel_settings import read_kernel_settings, read_parameters
from agents.hostagent.platform.linux.throttling import read_held_clock_mhz, read_throttling
from tests.support.machines import build_machine, list_machine_names


@pytest.mark.parametrize("name", list_machine_names())
def test_facts_and_throttling_of_a_machine_are_read(name: str, tmp_path: Path) -> None:
    golden = build_machine(name, tmp_path)
    facts = read_facts(tmp_path)
    assert {key: facts[key] for key in golden["facts"]} == golden["facts"]
    assert read_throttling(None, tmp_path)._asdict() == golden["throttling"]
    assert read_counters(None, tmp_path).throttle_count == golden["throttle_count"]
    assert read_held_clock_mhz(tmp_path) == golden.get("held_clock_mhz")


def test_unknown_throttling_is_not_known_rather_than_nothing(tmp_path: Path) -> None:
    build_machine("graviton", tmp_path)
    reasons = explain_unknown(tmp_path)
    for fact in ("throttle_count", "cooling_state", "clock_limit_mhz"):
        assert reasons[fact].startswith("not known: ")


def test_only_the_cpus_of_the_trial_count_for_the_clock_limit(tmp_path: Path) -> None:
    build_machine("raspberry-pi", tmp_path)
    limit = tmp_path / "sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq"
    limit.write_text("600000\n")
    assert read_throttling([0, 1], tmp_path).clock_limit_mhz == 1200
    assert read_throttling([1, 3], tmp_path).clock_limit_mhz == 600


def test_flags_since_boot_are_no_throttling_of_now(tmp_path: Path) -> None:
    build_machine("raspberry-pi", tmp_path)
    (tmp_path / "sys/class/thermal/cooling_device0/cur_state").write_text("0\n")
    flags = tmp_path / "sys/devices/platform/soc/soc:firmware/get_throttled"
    flags.write_text("70000\n")
    assert read_throttling(None, tmp_path) == Throttling(clock_limit_mhz=1200, cooling_state=0)
    flags.write_text("no number\n")
    assert read_throttling(None, tmp_path).cooling_state == 0


def test_cpus_with_different_settings_show_all_of_them(tmp_path: Path) -> None:
    build_machine("intel-desktop", tmp_path)
    policies = tmp_path / "sys/devices/system/cpu/cpufreq"
    (policies / "policy3/scaling_governor").write_text("performance\n")
    assert read_kernel_settings(tmp_path)["governor"] == "performance, powersave"
    assert read_held_clock_mhz(tmp_path) is None


def test_kernel_parameters_contain_only_what_changes_measurements(tmp_path: Path) -> None:
    assert read_parameters(tmp_path) is None
    (tmp_path / "proc").mkdir()
    line = "rd.luks.key=/key root=UUID=1 nosmt transparent-hugepage=never intel_idle.max_cstate=1"
    (tmp_path / "proc/cmdline").write_text(line)
    kept = "intel_idle.max_cstate=1 nosmt transparent-hugepage=never"
    assert read_parameters(tmp_path) == kept


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n", "ARM Neoverse-V2"),
        ("CPU implementer\t: 0xc0\nCPU variant\t: 0x1\nCPU part\t: 0xac3\nCPU revision\t: 1\n",
         "Ampere Ampere-1 r1p1"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xfff\n", "ARM part 0xfff"),
        ("CPU implementer\t: 0x99\nCPU part\t: 0x1\n", "CPU of implementer 0x99 part 0x1"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd05\n\nCPU implementer\t: 0x41\nCPU part\t: 0xd41",
         "ARM Cortex-A55, ARM Cortex-A78"),
        ("CPU implementer\t: x\nCPU part\t: y\n", None),
        ("BogoMIPS\t: 48.00\n", None),
    ],
)  # fmt: skip
def test_arm_models_are_named_from_their_numbers(cpuinfo: str, model: str | None) -> None:
    assert parse_arm_model(cpuinfo) == model
