"""Child processes on Windows (experimental), each with its descendants in a job object.

The job ends with our last handle to it, so that even a killed supervisor leaves no process. It
includes ended processes in its counters. A program without a console cannot be stopped gracefully:
`stop` is `kill` here.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Optional

from ...errors import AgentError
from ...sandbox.user import Account
from ..limits import NONE, Limits
from ..usage import Usage, sum_usages
from .windows import read_usages
from .windows_api import LIMIT_AFFINITY, Job, resume
from .windows_types import Accounting

#: CREATE_SUSPENDED, CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW.
_CHILD = 0x4 | 0x200 | 0x08000000
_FULL_RATE = 10_000
_open_jobs: set[Job] = set()


class Child:
    """One process in a job object, with its descendants; see posix_processes.Child."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: IO[Any],
        stderr: IO[Any],
        limits: Limits = NONE,
        name: str = "",
        adopts: bool = True,
        account: Optional[Account] = None,
    ) -> None:
        """`adopts` has no effect here: no process leaves a job. There is no `account`."""
        if account is not None:
            raise AgentError(f"the agent cannot run a process as {account.name} on Windows")
        self.name = name or Path(argv[0]).name
        self._job = Job()
        refused = set_limits(self._job, limits)
        try:
            self._popen = _start_in_job(
                self._job, argv, cwd=cwd, env=dict(env), stdout=stdout, stderr=stderr
            )
        except OSError:
            self._job.close()
            raise
        self.pid = self._popen.pid
        _open_jobs.add(self._job)
        resume(self.pid)
        self.applied = {**read_limits(self._job), "refused": refused}
        self.cpu_s: Optional[float] = None

    @property
    def exit_code(self) -> Optional[int]:
        return self._popen.poll()

    def wait(self, timeout_s: float) -> None:
        """Wait until it ends, at most `timeout_s`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout_s)

    def send(self, _number: int) -> None:
        """Terminate the process for any signal: without a console there is nothing else."""
        if self.exit_code is None:
            self._popen.terminate()

    def tree(self) -> set[int]:
        return self._job.pids()

    def usage(self) -> Optional[Usage]:
        """Return the usage of the whole job, including processes that have ended."""
        living = sum_usages(list(read_usages(self.tree()).values()))
        if living is None:
            return None
        counted = compute_job_usage(self._job.accounting())
        return counted._replace(rss_bytes=living.rss_bytes, peak_rss_bytes=living.peak_rss_bytes)

    def oom_kills(self) -> int:
        """A job object does not count them."""
        return 0

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
        self.cpu_s = compute_job_usage(self._job.accounting()).cpu_s
        _open_jobs.discard(self._job)
        self._job.close()


def _start_in_job(job: Job, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a suspended process in the job: no descendant can be outside of it.

    `options` are those of Popen. Raises OSError; then there is no process.
    """
    process = subprocess.Popen(
        list(argv), stdin=subprocess.DEVNULL, creationflags=_CHILD, **options
    )
    try:
        job.assign(process.pid)
    except OSError:
        process.kill()
        raise
    return process


def adopt_orphans() -> None:
    """Does nothing: an orphan stays in its job."""


def fork_helper(_run: Callable[[], None], _kept: Collection[int]) -> int:
    raise AgentError("this system has no fork")


def await_helper(_pid: int, _timeout_s: float) -> bool:
    return True


def list_helpers() -> set[int]:
    return set()


def kill_descendants() -> None:
    for job in _open_jobs:
        job.terminate()


def kill_marked(_variable: str) -> bool:
    """Return False: the kernel ends all processes of a killed supervisor with its job objects."""
    return False


def describe_marked(_variable: str) -> str:
    return ""


def describe_unkillable(name: str, pids: Collection[int]) -> str:
    return f"{name} does not end: process {', '.join(map(str, sorted(pids)))} still exists"


def set_limits(job: Job, limits: Limits) -> dict[str, str]:
    """Set the limits of a job object; return the reasons of the refused ones."""
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
            job.set_rate(compute_rate(limits.cpu_quota, os.cpu_count() or 1))
        except OSError as error:
            refused["cpu_quota"] = str(error)
    return refused


def compute_rate(quota: float, cpus: int) -> int:
    """Return JOBOBJECT_CPU_RATE_CONTROL_INFORMATION.CpuRate: 10,000 is all CPUs of the machine."""
    return max(1, min(_FULL_RATE, round(quota / cpus * _FULL_RATE)))


def read_limits(job: Job) -> dict[str, Any]:
    held = job.limits()
    rate = job.rate()
    cpus = os.cpu_count() or 1
    mask = held.BasicLimitInformation.Affinity
    is_bound = held.BasicLimitInformation.LimitFlags & LIMIT_AFFINITY
    return {
        "mechanism": "job",
        "cpus": list_cpus(mask) if is_bound else None,
        "cpu_quota": rate * cpus / _FULL_RATE if rate else None,
        "memory_bytes": held.JobMemoryLimit or None,
        "open_files": None,
    }


def list_cpus(mask: int) -> list[int]:
    return [cpu for cpu in range(64) if mask >> cpu & 1]


def compute_job_usage(counted: Accounting) -> Usage:
    """Return the usage of a job: times are in units of 100 ns; I/O is not only that of storage."""
    basic = counted.BasicInfo
    return Usage(
        cpu_s=(basic.TotalUserTime + basic.TotalKernelTime) / 1e7,
        read_bytes=counted.IoInfo.ReadTransferCount,
        written_bytes=counted.IoInfo.WriteTransferCount,
    )
