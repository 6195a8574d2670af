"""Tuning of the host: on a made-up file system, and of the real ASLR where we may."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents.hostagent import lock
from agents.hostagent.platform.linux.tuning import (
    HOST_LOCK,
    RECORD,
    apply_tuning,
    list_available_knobs,
    undo_leftover_tuning,
)

CPU = "sys/devices/system/cpu"
ASLR = "proc/sys/kernel/randomize_va_space"
SWAPPINESS = "proc/sys/vm/swappiness"
NO_TURBO = f"{CPU}/intel_pstate/no_turbo"
SMT = f"{CPU}/smt/control"
GOVERNORS = [f"{CPU}/cpufreq/policy{number}/scaling_governor" for number in (0, 1)]

BEFORE = {
    "proc/sys/kernel/random/boot_id": "5f1c8f5e-0001",
    ASLR: "2",
    SWAPPINESS: "60",
    NO_TURBO: "0",
    SMT: "on",
    **dict.fromkeys(GOVERNORS, "powersave"),
}
ALL = {"governor": "performance", "turbo": "off", "aslr": "off", "swappiness": "1", "smt": "off"}


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A machine with intel_pstate and two CPUs."""
    root = tmp_path / "system"
    for name, value in BEFORE.items():
        put(root, name, value)
    for name in GOVERNORS:
        put(root, name.replace("_governor", "_available_governors"), "performance powersave")
    return root


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def put(root: Path, name: str, value: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(f"{value}\n")


def state(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text().strip() for name in BEFORE if (root / name).exists()}


def test_tuning_sets_every_setting_and_restores_it(system: Path, work: Path) -> None:
    with apply_tuning(work, ALL, system) as report:
        assert report["applied"] == ALL
        assert report["refused"] == {}
        assert state(system) == {
            **BEFORE,
            **dict.fromkeys(GOVERNORS, "performance"),
            NO_TURBO: "1",
            ASLR: "0",
            SWAPPINESS: "1",
            SMT: "off",
        }
    assert state(system) == BEFORE
    assert report["left"] == {}
    assert not (work / RECORD).exists()


def test_tuning_is_restored_after_a_failure(system: Path, work: Path) -> None:
    with pytest.raises(ZeroDivisionError), apply_tuning(work, ALL, system):
        raise ZeroDivisionError
    assert state(system) == BEFORE


def test_tuning_records_the_old_values_before_the_first_change(system: Path, work: Path) -> None:
    with apply_tuning(work, {"aslr": "off"}, system):
        noted = json.loads((work / RECORD).read_text())
    assert noted["boot"] == BEFORE["proc/sys/kernel/random/boot_id"]
    assert [(change["old"], change["new"]) for change in noted["changes"]] == [("2", "0")]


@pytest.mark.parametrize(
    ("knob", "word", "why"),
    [
        ("governor", "ludicrous", "'ludicrous' is none of: performance, powersave"),
        ("turbo", "perhaps", "'perhaps' is none of: on, off"),
        ("swappiness", "201", "'201' is none of: 0 to 200"),
        ("overclock", "on", "unknown; there are smt, governor, turbo, aslr, swappiness"),
    ],
)
def test_tuning_refuses_an_invalid_value(
    system: Path, work: Path, knob: str, word: str, why: str
) -> None:
    with apply_tuning(work, {knob: word, "aslr": "off"}, system) as report:
        assert report["refused"] == {knob: why}
        assert report["applied"] == {"aslr": "off"}
    assert state(system) == BEFORE


def test_tuning_refuses_a_setting_that_the_host_lacks(work: Path, tmp_path: Path) -> None:
    with apply_tuning(work, {"governor": "performance"}, tmp_path) as report:
        assert report["refused"] == {"governor": "this host has no such setting"}
    assert not (work / RECORD).exists()


def test_tuning_uses_boost_where_there_is_no_intel_pstate(system: Path, work: Path) -> None:
    (system / NO_TURBO).unlink()
    put(system, f"{CPU}/cpufreq/boost", "1")
    with apply_tuning(work, {"turbo": "off"}, system):
        assert (system / f"{CPU}/cpufreq/boost").read_text() == "0"
    assert (system / f"{CPU}/cpufreq/boost").read_text() == "1"


def test_tuning_does_not_restore_what_somebody_else_changed(system: Path, work: Path) -> None:
    with apply_tuning(work, {"swappiness": "1", "aslr": "off"}, system) as report:
        put(system, SWAPPINESS, "10")
    assert state(system) == {**BEFORE, SWAPPINESS: "10"}
    assert list(report["left"]) == ["swappiness"]
    assert "to '10'; before the step it was" in report["left"]["swappiness"]


def test_tuning_changes_nothing_if_all_values_are_right(system: Path, work: Path) -> None:
    with apply_tuning(work, {"aslr": "on"}, system) as report:
        assert report["applied"] == {"aslr": "on"}
        assert not (work / RECORD).exists()


def cut_short(system: Path, work: Path) -> None:
    """Leave the host tuned, as `kill -9` does."""
    with apply_tuning(work, ALL, system):
        left = {name: (system / name).read_text() for name in BEFORE}
        record = (work / RECORD).read_bytes()
    for name, value in left.items():
        (system / name).write_text(value)
    (work / RECORD).write_bytes(record)


def test_tuning_of_a_killed_supervisor_is_undone(system: Path, work: Path) -> None:
    cut_short(system, work)
    assert state(system) != BEFORE
    assert undo_leftover_tuning(work, system) is True
    assert state(system) == BEFORE
    assert undo_leftover_tuning(work, system) is False


def test_old_tuning_is_undone_before_new_tuning(system: Path, work: Path) -> None:
    cut_short(system, work)
    with apply_tuning(work, {"aslr": "off"}, system):
        assert state(system) == {**BEFORE, ASLR: "0"}
    assert state(system) == BEFORE


def test_tuning_of_a_live_supervisor_is_kept(system: Path, work: Path) -> None:
    cut_short(system, work)
    held = lock.take(work / HOST_LOCK)
    assert held is not None
    assert undo_leftover_tuning(work, system) is False
    assert state(system)[ASLR] == "0"
    os.close(held)


def test_tuning_writes_nothing_after_a_reboot(system: Path, work: Path) -> None:
    cut_short(system, work)
    put(system, "proc/sys/kernel/random/boot_id", "5f1c8f5e-0002")
    put(system, ASLR, "0")  # set by the new boot itself
    assert undo_leftover_tuning(work, system) is True
    assert state(system)[ASLR] == "0"
    assert not (work / RECORD).exists()


def test_tuning_keeps_its_record_until_all_is_restored(system: Path, work: Path) -> None:
    cut_short(system, work)
    (system / SWAPPINESS).unlink()
    (system / SWAPPINESS).mkdir()  # neither to be read nor written
    undo_leftover_tuning(work, system)
    assert (work / RECORD).exists()
    (system / SWAPPINESS).rmdir()
    put(system, SWAPPINESS, "1")
    undo_leftover_tuning(work, system)
    assert state(system) == BEFORE
    assert not (work / RECORD).exists()


def test_tuning_lists_the_settings_that_can_be_changed(system: Path) -> None:
    assert list_available_knobs(system) == ["smt", "governor", "turbo", "aslr", "swappiness"]
    (system / SMT).unlink()
    assert "smt" not in list_available_knobs(system)


#: Tunes the real host, reports it, and waits.
HOLDER = """
import sys, time
from pathlib import Path
from agents.hostagent import lock
from agents.hostagent.platform.linux.tuning import HOST_LOCK, apply_tuning
work = Path(sys.argv[1])
lock.take(work / HOST_LOCK)
with apply_tuning(work, {"aslr": sys.argv[2]}) as said:
    print(said["applied"], flush=True)
    time.sleep(300)
"""


@pytest.mark.skipif(not os.access(f"/{ASLR}", os.W_OK), reason="only root may set ASLR")
def test_tuning_of_aslr_is_undone_after_kill_9(work: Path) -> None:
    aslr = Path(f"/{ASLR}")
    before = aslr.read_text()
    word, other = ("off", "0\n") if before != "0\n" else ("on", "2\n")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(work), word], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout
        assert holder.stdout.readline() == f"{{'aslr': '{word}'}}\n"
        assert aslr.read_text() == other
        assert undo_leftover_tuning(work) is False  # it lives
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert aslr.read_text() == other
        assert undo_leftover_tuning(work) is True
        assert aslr.read_text() == before
    finally:
        holder.kill()
        holder.communicate()
        aslr.write_text(before)
