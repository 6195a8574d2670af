"""A Windows host: processes, limits and facts; see system.py and processes.py for the interfaces.

Each child lives in a job object (winapi.py) that ends with our last handle to it, so that not
even a killed supervisor leaves a process behind, and that counts for processes that have ended.
There is no polite way to end a program without a console: `stop` is `kill` here.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Optional

from . import machines, winapi
from .limits import NONE, Limits
from .proctable import Process
from .usage import Usage, total

winreg: Any
try:
    import winreg
except ImportError:  # not Windows
    winreg = None

UNKNOWN = dict.fromkeys(
    ("voluntary_switches", "involuntary_switches"), "Windows does not tell them apart"
)
#: DETACHED_PROCESS and CREATE_NEW_PROCESS_GROUP.
DETACHED: dict[str, Any] = {"creationflags": 0x8 | 0x200}
#: CREATE_SUSPENDED, CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW.
_CHILD = 0x4 | 0x200 | 0x08000000
_FULL_RATE = 10_000
_open_jobs: set[winapi.Job] = set()
_CPU_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
_BIOS_KEY = r"HARDWARE\DESCRIPTION\System\BIOS"
_SCHEMES = {
    "381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "high performance",
    "a1841308-3541-4fab-bc81-f71556f20b4a": "power saver",
    "e9a42b02-d5df-448d-aa00-03f14749eb61": "ultimate performance",
}


class Child:
    """One process in a job object, with all that it starts; see posix.Child."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: IO[Any],
        stderr: IO[Any],
        limits: Limits = NONE,
        cpus: Optional[Sequence[int]] = None,
        name: str = "",
        adopts: bool = True,
    ) -> None:
        """`adopts` says nothing here: nobody leaves a job."""
        if cpus is not None:
            limits = replace(limits, cpus=tuple(cpus))
        self.name = name or Path(argv[0]).name
        self._job = winapi.Job()
        refused = _limit(self._job, limits)
        try:
            self._popen = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                creationflags=_CHILD,
            )
        except OSError:
            self._job.close()
            raise
        self.pid = self._popen.pid
        self._job.assign(self.pid)
        _open_jobs.add(self._job)
        winapi.resume(self.pid)  # until here it ran nothing, so nothing of it is outside the job
        self.applied = {**_applied(self._job), "refused": refused}
        self.cpu_s: Optional[float] = None

    @property
    def exit_code(self) -> Optional[int]:
        return self._popen.poll()

    def send(self, _number: int) -> None:
        """Whatever the signal: a process without a console can only be ended."""
        if self.exit_code is None:
            self._popen.terminate()

    def tree(self) -> set[int]:
        return self._job.pids()

    def usage(self) -> Optional[Usage]:
        """Of the whole job: also of processes that have ended."""
        living = of_tree(self.tree())
        if living is None:
            return None
        counted = job_usage(self._job.accounting())
        return replace(counted, rss_bytes=living.rss_bytes, peak_rss_bytes=living.peak_rss_bytes)

    def stop(self, grace_s: float) -> None:
        del grace_s
        self.kill()

    def end_session(self) -> None:
        self.kill()

    def kill(self, known: Iterable[int] = ()) -> None:
        del known
        if self._job not in _open_jobs:
            return
        self._job.terminate()
        self._popen.wait()
        self.cpu_s = job_usage(self._job.accounting()).cpu_s
        _open_jobs.discard(self._job)
        self._job.close()


def adopt_orphans() -> None:
    """Nothing to do: an orphan stays in its job."""


def kill_descendants() -> None:
    for job in _open_jobs:
        job.terminate()


def kill_marked(_variable: str) -> bool:
    """False: the kernel ended what a killed supervisor had started, with its job objects."""
    return False


def _limit(job: winapi.Job, limits: Limits) -> dict[str, str]:
    """Set what a job object can hold; the reasons for what it cannot."""
    refused = {}
    if limits.open_files is not None:
        refused["open_files"] = "Windows has no such limit"
    mask = sum(1 << cpu for cpu in set(limits.cpus or ()))
    try:
        job.set_limits(affinity=mask, memory_bytes=limits.memory_bytes or 0)
    except OSError as error:
        for name in ("cpus", "memory_bytes"):
            if getattr(limits, name) is not None:
                refused[name] = str(error)
        job.set_limits(affinity=0, memory_bytes=0)
    if limits.cpu_quota is not None:
        try:
            job.set_rate(rate_of(limits.cpu_quota, os.cpu_count() or 1))
        except OSError as error:
            refused["cpu_quota"] = str(error)
    return refused


def rate_of(quota: float, cpus: int) -> int:
    """JOBOBJECT_CPU_RATE_CONTROL_INFORMATION.CpuRate: 10,000 is all CPUs of the machine."""
    return max(1, min(_FULL_RATE, round(quota / cpus * _FULL_RATE)))


def _applied(job: winapi.Job) -> dict[str, Any]:
    held = job.limits()
    rate = job.rate()
    cpus = os.cpu_count() or 1
    mask = held.BasicLimitInformation.Affinity
    is_bound = held.BasicLimitInformation.LimitFlags & winapi.LIMIT_AFFINITY
    return {
        "mechanism": "job",
        "cpus": cpus_of(mask) if is_bound else None,
        "cpu_quota": rate * cpus / _FULL_RATE if rate else None,
        "memory_bytes": held.JobMemoryLimit or None,
        "open_files": None,
    }


def cpus_of(mask: int) -> list[int]:
    return [cpu for cpu in range(64) if mask >> cpu & 1]


def job_usage(counted: winapi.Accounting) -> Usage:
    """Times are in units of 100 ns; I/O is that of all kinds, not only storage."""
    basic = counted.BasicInfo
    return Usage(
        cpu_s=(basic.TotalUserTime + basic.TotalKernelTime) / 1e7,
        read_bytes=counted.IoInfo.ReadTransferCount,
        written_bytes=counted.IoInfo.WriteTransferCount,
    )


def snapshot() -> dict[int, Process]:
    """Windows has neither groups nor sessions nor zombies."""
    return {pid: Process(pid, parent, 0, None, False) for pid, parent in winapi.processes().items()}


def of_tree(pids: Iterable[int]) -> Optional[Usage]:
    read = [winapi.process_counters(pid) for pid in pids]
    return total(
        [
            Usage(
                cpu_s=cpu_s,
                rss_bytes=memory.WorkingSetSize,
                peak_rss_bytes=memory.PeakWorkingSetSize,
            )
            for cpu_s, memory in filter(None, read)
        ]
    )


def marked(_variable: str) -> set[int]:
    return set()


def stolen_s() -> Optional[float]:
    return None


def temperatures() -> dict[str, float]:
    return {}


def temperature_c() -> Optional[float]:
    return None


def clock_mhz() -> Optional[float]:
    clocks = [cpu.CurrentMhz for cpu in winapi.clocks()]
    return sum(clocks) / len(clocks) if clocks else None


def facts() -> dict[str, Any]:
    cpu, bios = _registry(_CPU_KEY), _registry(_BIOS_KEY)
    clocks = winapi.clocks()
    memory = winapi.memory()
    return {
        "cpu_model": _text(cpu.get("ProcessorNameString")),
        "cores": winapi.cores() or None,
        "microcode": microcode(cpu.get("Update Revision")),
        "clock_base_mhz": cpu.get("~MHz"),
        "clock_max_mhz": max((clock.MaxMhz for clock in clocks), default=None),
        "memory_bytes": memory.ullTotalPhys or None,
        "swap_bytes": max(0, memory.ullTotalPageFile - memory.ullTotalPhys),
        "os_name": "Windows",
        "os_version": platform.version() or None,
        "governor": _SCHEMES.get(winapi.power_scheme(), winapi.power_scheme() or None),
        "virtualisation": machines.hypervisor(
            f"{bios.get('SystemManufacturer', '')} {bios.get('SystemProductName', '')}"
        ),
        **power(winapi.power_status()),
        "uptime_s": winapi.uptime_s(),
    }


def _registry(path: str) -> dict[str, Any]:
    """The values of a key below HKEY_LOCAL_MACHINE; none where there is no such key."""
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            count = winreg.QueryInfoKey(key)[1]
            return {
                name: value for name, value, _ in (winreg.EnumValue(key, n) for n in range(count))
            }
    except OSError:
        return {}


def _text(value: Any) -> Optional[str]:
    return value.strip() if isinstance(value, str) else None


def microcode(revision: Any) -> Optional[str]:
    """From the registry's "Update Revision": eight bytes, the upper half is the number."""
    if not isinstance(revision, bytes) or len(revision) != 8:
        return None
    return hex(int.from_bytes(revision[4:], "little") or int.from_bytes(revision[:4], "little"))


def power(status: winapi.PowerStatus) -> dict[str, Any]:
    """SYSTEM_POWER_STATUS, where 255 is unknown and flag 128 is no battery."""
    return {
        "power_source": {0: "battery", 1: "mains"}.get(status.ACLineStatus),
        "battery_percent": (
            None
            if status.BatteryLifePercent == 255 or status.BatteryFlag & 128
            else status.BatteryLifePercent
        ),
    }
