"""Windows, by the documented layouts and calls: it has not run on one here."""

import ctypes
import struct
from typing import Any

import pytest

from agents.hostagent.platform.experimental import (
    windows,
    windows_api,
    windows_processes,
    windows_types,
)
from agents.hostagent.platform.limits import Limits


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("BasicLimits", 64),
        ("IoCounters", 48),
        ("ExtendedLimits", 144),
        ("BasicAccounting", 48),
        ("Accounting", 96),
        ("RateControl", 8),
        ("ProcessEntry", 568),
        ("ThreadEntry", 28),
        ("MemoryCounters", 72),
        ("MemoryStatus", 64),
        ("PowerStatus", 12),
        ("CpuPower", 24),
        ("LogicalProcessor", 32),
    ],
)
def test_structures_have_the_sizes_of_64_bit_windows(name: str, size: int) -> None:
    assert ctypes.sizeof(getattr(windows_types, name)) == size


def test_usage_of_a_job_object_is_read() -> None:
    # Ten seconds of user time, five of kernel time, in units of 100 ns.
    basic = struct.pack("<4q4I", 100_000_000, 50_000_000, 0, 0, 7, 3, 2, 0)
    moved = struct.pack("<6Q", 1, 2, 3, 4096, 8192, 5)
    usage = windows_processes.compute_job_usage(
        windows_types.Accounting.from_buffer_copy(basic + moved)
    )
    assert usage.cpu_s == 15.0
    assert (usage.read_bytes, usage.written_bytes) == (4096, 8192)


@pytest.mark.parametrize(
    ("quota", "cpus", "rate"), [(0.5, 4, 1250), (4.0, 4, 10_000), (9.0, 4, 10_000), (0.0001, 64, 1)]
)
def test_a_quota_is_a_share_of_the_whole_machine(quota: float, cpus: int, rate: int) -> None:
    assert windows_processes.compute_rate(quota, cpus) == rate


class KernelJob:
    """A job object as the kernel keeps it; `refuses` names the calls that fail."""

    def __init__(self, *refuses: str) -> None:
        self._refuses = refuses
        self._limits = windows_types.ExtendedLimits()
        self._rate = 0

    def set_limits(self, *, affinity: int, memory_bytes: int) -> None:
        if "limits" in self._refuses and (affinity or memory_bytes):
            raise OSError("The parameter is incorrect")
        basic = self._limits.BasicLimitInformation
        basic.LimitFlags = windows_api.LIMIT_AFFINITY if affinity else 0
        basic.Affinity, self._limits.JobMemoryLimit = affinity, memory_bytes

    def set_rate(self, rate: int) -> None:
        if "rate" in self._refuses:
            raise OSError("Access is denied")
        self._rate = rate

    def limits(self) -> Any:
        return self._limits

    def rate(self) -> int:
        return self._rate


def applied(limits: Limits, job: KernelJob, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    refused = windows_processes.set_limits(job, limits)  # type: ignore[arg-type]
    return {**windows_processes.read_limits(job), "refused": refused}  # type: ignore[arg-type]


def test_limits_of_a_job_object_are_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(cpus=(0, 2), cpu_quota=0.5, memory_bytes=1 << 28)
    assert applied(limits, KernelJob(), monkeypatch) == {
        "mechanism": "job",
        "cpus": [0, 2],
        "cpu_quota": 0.5,
        "memory_bytes": 1 << 28,
        "open_files": None,
        "refused": {},
    }


def test_no_limit_is_dropped_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(cpus=(9,), cpu_quota=0.5, open_files=100)
    report = applied(limits, KernelJob("limits", "rate"), monkeypatch)
    assert (report["cpus"], report["cpu_quota"]) == (None, None)
    assert report["refused"] == {
        "open_files": "Windows has no such limit",
        "cpus": "The parameter is incorrect",
        "cpu_quota": "Access is denied",
    }


@pytest.mark.parametrize(
    ("raw", "source", "percent"),
    [
        ((1, 128, 255, 0), "mains", None),  # no battery
        ((0, 1, 83, 0), "battery", 83),
        ((1, 8, 99, 0), "mains", 99),  # charging
        ((255, 255, 255, 0), None, None),  # unknown
    ],
)
def test_the_power_status_is_read(
    raw: tuple[int, ...], source: str | None, percent: int | None
) -> None:
    status = windows_types.PowerStatus.from_buffer_copy(struct.pack("<4B2I", *raw, 0, 0))
    assert windows.parse_power(status) == {"power_source": source, "battery_percent": percent}


def test_microcode_is_read_from_the_registry() -> None:
    assert windows.parse_microcode(bytes.fromhex("00000000f4000000")) == "0xf4"  # Intel
    assert windows.parse_microcode(None) is None
    assert windows.parse_microcode(b"short") is None


def test_windows_libraries_are_loaded_on_first_use() -> None:
    with pytest.raises(AttributeError, match="WinDLL"):
        windows_api.read_memory()
