"""Tuning of the host: on a made-up file system, and of the real ASLR where we may."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agents.hostagent import lock
from agents.hostagent.platform.linux.knobs import list_available_knobs
from agents.hostagent.platform.linux.tuning import HOST_LOCK, Tuning, undo_leftover_tuning
from agents.hostagent.platform.linux.tuning_record import RECORD, find_unrestored
from tests.support.machines import build_machine

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


@contextlib.contextmanager
def apply_tuning(work: Path, wanted: dict[str, str], system: Path) -> Iterator[Tuning]:
    tuning = Tuning(system)
    with tuning.apply(work, wanted):
        yield tuning


def state(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text().strip() for name in BEFORE if (root / name).exists()}


def test_tuning_sets_every_setting_and_restores_it(system: Path, work: Path) -> None:
    with apply_tuning(work, ALL, system) as report:
        assert report.applied == ALL
        assert report.refused == {}
        assert state(system) == {
            **BEFORE,
            **dict.fromkeys(GOVERNORS, "performance"),
            NO_TURBO: "1",
            ASLR: "0",
            SWAPPINESS: "1",
            SMT: "off",
        }
    assert state(system) == BEFORE
    assert report.left == {}
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
        assert report.refused == {knob: why}
        assert report.applied == {"aslr": "off"}
    assert state(system) == BEFORE


def test_tuning_refuses_a_setting_that_the_host_lacks(work: Path, tmp_path: Path) -> None:
    with apply_tuning(work, {"governor": "performance"}, tmp_path) as report:
        assert report.refused["governor"].startswith("this host has no such setting")
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
    assert list(report.left) == ["swappiness"]
    assert "to '10'; before the step it was" in report.left["swappiness"]


def test_tuning_changes_nothing_if_all_values_are_right(system: Path, work: Path) -> None:
    with apply_tuning(work, {"aslr": "on"}, system) as report:
        assert report.applied == {"aslr": "on"}
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


class KernelPath(type(Path())):  # type: ignore[misc]
    """A path of a machine whose cpufreq policies behave as those of the kernel.

    `before_write` is called before each write.
    """

    offline: ClassVar[set[str]] = set()
    read_only: ClassVar[set[str]] = set()
    before_write: ClassVar[Callable[[Path], None]] = staticmethod(lambda _path: None)

    @property
    def _policy(self) -> str:
        return self.parent.name if self.parent.name.startswith("policy") else ""

    def _check_active(self) -> None:
        if self._policy in self.offline:
            raise OSError(errno.EBUSY, "Device or resource busy")

    def read_text(self, *arguments: Any, **options: Any) -> str:
        if self.exists():
            self._check_active()
        return super().read_text(*arguments, **options)

    def write_text(self, data: str, *arguments: Any, **options: Any) -> int:
        type(self).before_write(self)
        self._check_active()
        if self._policy and f"{self._policy}/{self.name}" in self.read_only:
            raise OSError(errno.EACCES, "Permission denied")
        if self.match("smt/control"):
            siblings = {f"policy{number}" for number in range(8, 16)}
            type(self).offline = siblings if data.strip() == "off" else set()
        if self.name == "scaling_governor":  # as intel_pstate does
            preference = "performance" if data.strip() == "performance" else "default"
            Path(self.with_name("energy_performance_preference")).write_text(preference)
        return super().write_text(data, *arguments, **options)


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[KernelPath]:
    """An Intel machine with 8 cores and SMT, and one cpufreq policy for each of its 16 threads."""
    root = KernelPath(tmp_path / "desktop")
    build_machine("intel-desktop", Path(root))
    yield root
    KernelPath.offline, KernelPath.read_only = set(), set()
    KernelPath.before_write = staticmethod(lambda _path: None)


def read_all(root: Path) -> dict[str, str]:
    """Return all files that tuning may change, by path; as a disk has them, without a kernel."""
    plain = Path(root)
    names = ("scaling_governor", "energy_performance_preference")
    paths = [path for name in names for path in plain.glob(f"{CPU}/cpufreq/policy*/{name}")]
    paths += [plain / name for name in (SMT, NO_TURBO, ASLR, SWAPPINESS)]
    return {str(path.relative_to(plain)): path.read_text().strip() for path in paths}


def governors(root: Path) -> list[str]:
    files = (Path(root) / CPU / f"cpufreq/policy{n}/scaling_governor" for n in range(16))
    return [path.read_text().strip() for path in files]


def test_governors_of_cpus_that_smt_takes_offline_are_left(desktop: KernelPath, work: Path) -> None:
    before = read_all(desktop)
    with apply_tuning(work, ALL, desktop) as report:
        assert (report.applied, report.refused) == (ALL, {})
        assert governors(desktop) == ["performance"] * 8 + ["powersave"] * 8
        assert report.find_changed() == {}
    assert report.left == {}
    assert read_all(desktop) == before


def test_cpus_that_smt_brings_online_are_tuned_as_well(desktop: KernelPath, work: Path) -> None:
    KernelPath(desktop / SMT).write_text("off")
    with apply_tuning(work, {"smt": "on", "governor": "performance"}, desktop):
        assert governors(desktop) == ["performance"] * 16
    assert governors(desktop) == ["powersave"] * 16
    assert KernelPath.offline


def test_a_policy_without_cpus_is_inactive_on_older_kernels(desktop: Path, work: Path) -> None:
    put(Path(desktop), f"{CPU}/cpufreq/policy15/affected_cpus", "")
    KernelPath.read_only = {"policy15/scaling_governor"}
    with apply_tuning(work, {"governor": "performance"}, desktop) as report:
        assert report.refused == {}


def test_a_setting_that_is_refused_midway_is_undone_at_once(desktop: Path, work: Path) -> None:
    before = read_all(desktop)
    KernelPath.read_only = {"policy10/scaling_governor"}
    with apply_tuning(work, {"governor": "performance", "aslr": "off"}, desktop) as report:
        assert report.applied == {"aslr": "off"}
        assert report.refused["governor"].endswith(
            "cpufreq/policy10/scaling_governor: Permission denied (only root may write it)"
        )
        assert read_all(desktop) == {**before, ASLR: "0"}
    assert (report.left, read_all(desktop)) == ({}, before)


def test_tuning_is_undone_after_a_kill_at_any_write(desktop: KernelPath, work: Path) -> None:
    """Each write is preceded by a durable record of all that it changes."""
    before = read_all(desktop)
    killed: list[tuple[dict[str, str], bytes, set[str]]] = []

    def note(path: Path) -> None:
        record = work / RECORD
        assert str(path.relative_to(desktop)) in record.read_text()
        killed.append((read_all(desktop), record.read_bytes(), set(KernelPath.offline)))

    KernelPath.before_write = staticmethod(note)
    with apply_tuning(work, ALL, desktop):
        KernelPath.before_write = staticmethod(lambda _path: None)
    assert len(killed) == 12  # SMT, 8 governors, turbo, ASLR, swappiness
    for files, record_bytes, offline in killed:
        for name, value in files.items():
            (Path(desktop) / name).write_text(value)
        (work / RECORD).write_bytes(record_bytes)
        KernelPath.offline = offline
        assert undo_leftover_tuning(work, desktop) is True
        assert read_all(desktop) == before
        assert not (work / RECORD).exists()


def test_a_change_during_the_load_is_found(desktop: KernelPath, work: Path) -> None:
    with apply_tuning(work, {"governor": "performance", "turbo": "off"}, desktop) as report:
        put(Path(desktop), f"{CPU}/cpufreq/policy2/scaling_governor", "powersave")
        put(Path(desktop), NO_TURBO, "1")
        path = desktop / CPU / "cpufreq/policy2/scaling_governor"
        assert report.find_changed() == {
            "governor": f"{path} is 'powersave' instead of 'performance'"
        }
        KernelPath.offline = {"policy2"}
        assert "busy" in report.find_changed()["governor"]
        KernelPath.offline = set()


def test_what_cannot_be_restored_keeps_its_first_value(desktop: KernelPath, work: Path) -> None:
    before = read_all(desktop)
    with apply_tuning(work, {"governor": "performance"}, desktop) as report:
        KernelPath.offline = {"policy3"}
    assert "policy3/scaling_governor: Device or resource busy" in report.left["governor"]
    assert "policy3/scaling_governor was 'powersave'" in find_unrestored(work, desktop)["governor"]
    KernelPath.offline = set()
    KernelPath.read_only = {"policy3/scaling_governor"}  # it cannot be undone before the next step
    with apply_tuning(work, {"governor": "performance"}, desktop) as report:
        assert report.applied == {"governor": "performance"}
        KernelPath.read_only = set()
    assert (report.left, read_all(desktop)) == ({}, before)
    assert find_unrestored(work, desktop) == {}


def test_a_preference_that_the_driver_changes_with_the_governor_is_restored(
    desktop: KernelPath, work: Path
) -> None:
    preference = f"{CPU}/cpufreq/policy0/energy_performance_preference"
    with apply_tuning(work, {"governor": "performance"}, desktop):
        assert (Path(desktop) / preference).read_text() == "performance"
    assert (Path(desktop) / preference).read_text() == "balance_performance"


#: Tunes the real host, reports it, and waits.
HOLDER = """
import sys, time
from pathlib import Path
from agents.hostagent import lock
from agents.hostagent.platform.linux.tuning import HOST_LOCK, Tuning
work = Path(sys.argv[1])
lock.take(work / HOST_LOCK)
tuning = Tuning()
with tuning.apply(work, {"aslr": sys.argv[2]}):
    print(tuning.applied, flush=True)
    time.sleep(300)
"""


@pytest.mark.quiet  # The ASLR of this machine is a fact of the hosts of other tests.
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
