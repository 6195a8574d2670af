"""Windows API (experimental): importable on all systems; libraries are loaded at the first call."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import uuid
from collections.abc import Iterator
from typing import Any, Optional

from .windows_types import (
    Accounting,
    CpuPower,
    ExtendedLimits,
    LogicalProcessor,
    MemoryCounters,
    MemoryStatus,
    PidList,
    PowerStatus,
    ProcessEntry,
    RateControl,
    ThreadEntry,
)

LIMIT_AFFINITY = 0x10
LIMIT_JOB_MEMORY = 0x200
LIMIT_KILL_ON_JOB_CLOSE = 0x2000
_RATE_ENABLE, _RATE_HARD_CAP = 0x1, 0x4
# JOBOBJECTINFOCLASS
_PIDS, _ACCOUNTING, _EXTENDED, _RATE = 3, 8, 9, 15
_PROCESS_TERMINATE, _PROCESS_SET_QUOTA, _PROCESS_QUERY = 0x1, 0x100, 0x1000
_THREAD_SUSPEND_RESUME = 0x2
_SNAP_PROCESSES, _SNAP_THREADS = 0x2, 0x4
_INVALID_HANDLE = ctypes.c_void_p(-1).value
_MAX_CPUS = 64
#: POWER_INFORMATION_LEVEL ProcessorInformation.
_PROCESSOR_INFORMATION = 11
#: LOGICAL_PROCESSOR_RELATIONSHIP RelationProcessorCore.
_CORE = 0


class Job:
    """A job object whose processes end with the last handle to it: this one."""

    def __init__(self) -> None:
        self._handle = _handle(_load_kernel().CreateJobObjectW(None, None))

    def set_limits(self, *, affinity: int, memory_bytes: int) -> None:
        """0 = no limit; the processes end with the job in any case. OSError if refused."""
        limits = ExtendedLimits()
        basic = limits.BasicLimitInformation
        basic.LimitFlags = LIMIT_KILL_ON_JOB_CLOSE
        if affinity:
            basic.LimitFlags |= LIMIT_AFFINITY
            basic.Affinity = affinity
        if memory_bytes:
            basic.LimitFlags |= LIMIT_JOB_MEMORY
            limits.JobMemoryLimit = memory_bytes
        self._set(_EXTENDED, limits)

    def set_rate(self, rate: int) -> None:
        """At most `rate` / 10,000 of all CPUs of the machine."""
        self._set(_RATE, RateControl(_RATE_ENABLE | _RATE_HARD_CAP, rate))

    def limits(self) -> ExtendedLimits:
        return self._get(_EXTENDED, ExtendedLimits())

    def rate(self) -> int:
        """0 = no quota."""
        control: RateControl = self._get(_RATE, RateControl())
        return control.CpuRate if control.ControlFlags & _RATE_ENABLE else 0

    def accounting(self) -> Accounting:
        return self._get(_ACCOUNTING, Accounting())

    def pids(self) -> set[int]:
        pid_list: PidList = self._get(_PIDS, PidList())
        return set(pid_list.ProcessIdList[: pid_list.NumberOfProcessIdsInList])

    def assign(self, pid: int) -> None:
        with _open_handle("OpenProcess", _PROCESS_TERMINATE | _PROCESS_SET_QUOTA, pid) as process:
            _check(_load_kernel().AssignProcessToJobObject(self._handle, process))

    def terminate(self) -> None:
        _check(_load_kernel().TerminateJobObject(self._handle, 1))

    def close(self) -> None:
        _load_kernel().CloseHandle(self._handle)

    def _set(self, kind: int, value: ctypes.Structure) -> None:
        size = ctypes.sizeof(value)
        _check(
            _load_kernel().SetInformationJobObject(self._handle, kind, ctypes.byref(value), size)
        )

    def _get(self, kind: int, value: Any) -> Any:
        size = ctypes.sizeof(value)
        _check(
            _load_kernel().QueryInformationJobObject(
                self._handle, kind, ctypes.byref(value), size, None
            )
        )
        return value


def list_processes() -> dict[int, int]:
    """Return the parent's pid by pid, of all processes."""
    entries = _iterate_entries(_SNAP_PROCESSES, "Process32FirstW", "Process32NextW", ProcessEntry())
    return {entry.th32ProcessID: entry.th32ParentProcessID for entry in entries}


def resume(pid: int) -> None:
    """Let a process run that was started with CREATE_SUSPENDED."""
    entries = _iterate_entries(_SNAP_THREADS, "Thread32First", "Thread32Next", ThreadEntry())
    for thread in [entry.th32ThreadID for entry in entries if entry.th32OwnerProcessID == pid]:
        with _open_handle("OpenThread", _THREAD_SUSPEND_RESUME, thread) as handle:
            _load_kernel().ResumeThread(handle)


def process_counters(pid: int) -> Optional[tuple[float, MemoryCounters]]:
    """Return CPU seconds and memory of a process; None for one that has ended or is not ours."""
    times = (ctypes.c_uint64 * 4)()  # FILETIME: created, exited, kernel, user; in units of 100 ns
    memory = MemoryCounters()
    size = memory.cb = ctypes.sizeof(memory)
    at = [ctypes.byref(times, 8 * place) for place in range(4)]
    with contextlib.suppress(OSError), _open_handle("OpenProcess", _PROCESS_QUERY, pid) as process:
        _check(_load_kernel().GetProcessTimes(process, *at))
        _check(_load_kernel().K32GetProcessMemoryInfo(process, ctypes.byref(memory), size))
        return (times[2] + times[3]) / 1e7, memory
    return None


def read_memory() -> MemoryStatus:
    status = MemoryStatus(dwLength=ctypes.sizeof(MemoryStatus))
    _check(_load_kernel().GlobalMemoryStatusEx(ctypes.byref(status)))
    return status


def read_power_status() -> PowerStatus:
    status = PowerStatus()
    _check(_load_kernel().GetSystemPowerStatus(ctypes.byref(status)))
    return status


def read_clocks() -> list[CpuPower]:
    """Return the clocks by logical CPU; empty if the system does not report them."""
    cpus = (CpuPower * _MAX_CPUS)()
    status = _load_library("powrprof").CallNtPowerInformation(
        _PROCESSOR_INFORMATION, None, 0, ctypes.byref(cpus), ctypes.sizeof(cpus)
    )
    return [cpu for cpu in cpus if cpu.MaxMhz] if status == 0 else []


def read_power_scheme() -> str:
    """Return the GUID of the active power scheme; "" if there is none."""
    scheme = ctypes.c_void_p()
    if (
        _load_library("powrprof").PowerGetActiveScheme(None, ctypes.byref(scheme))
        or not scheme.value
    ):
        return ""
    guid = uuid.UUID(bytes_le=ctypes.string_at(scheme.value, 16))
    _load_kernel().LocalFree(scheme)
    return str(guid)


def count_cores() -> int:
    """Return the number of physical cores; 0 if the system does not report it."""
    size = ctypes.c_uint32(0)
    _load_kernel().GetLogicalProcessorInformation(None, ctypes.byref(size))
    count = size.value // ctypes.sizeof(LogicalProcessor)
    processors = (LogicalProcessor * count)()
    if not _load_kernel().GetLogicalProcessorInformation(
        ctypes.byref(processors), ctypes.byref(size)
    ):
        return 0
    return sum(1 for item in processors if item.Relationship == _CORE)


def read_uptime_s() -> float:
    milliseconds: int = _load_kernel().GetTickCount64()
    return milliseconds / 1000


def _iterate_entries(kind: int, first: str, following: str, entry: Any) -> Iterator[Any]:
    """The entries of a Toolhelp snapshot; each one overwrites the same structure."""
    handle = _handle(_load_kernel().CreateToolhelp32Snapshot(kind, 0))
    try:
        entry.dwSize = ctypes.sizeof(entry)
        more = getattr(_load_kernel(), first)(handle, ctypes.byref(entry))
        while more:
            yield entry
            more = getattr(_load_kernel(), following)(handle, ctypes.byref(entry))
    finally:
        _load_kernel().CloseHandle(handle)


@contextlib.contextmanager
def _open_handle(call: str, access: int, number: int) -> Iterator[ctypes.c_void_p]:
    handle = _handle(getattr(_load_kernel(), call)(access, False, number))
    try:
        yield handle
    finally:
        _load_kernel().CloseHandle(handle)


def _handle(value: Any) -> ctypes.c_void_p:
    if value in (None, 0, _INVALID_HANDLE):
        _check(0)
    return ctypes.c_void_p(value)


def _check(done: Any) -> None:
    """Raise OSError with the message of the system if a call failed."""
    if not done:
        raise getattr(ctypes, "WinError")(getattr(ctypes, "get_last_error")())  # noqa: B009


def _load_kernel() -> Any:
    return _load_library("kernel32")


@functools.cache
def _load_library(name: str) -> Any:
    library = getattr(ctypes, "WinDLL")(name, use_last_error=True)  # noqa: B009
    if name == "kernel32":
        for call in ("CreateJobObjectW", "CreateToolhelp32Snapshot", "OpenProcess", "OpenThread"):
            getattr(library, call).restype = ctypes.c_void_p
        library.GetTickCount64.restype = ctypes.c_uint64
    return library
