"""The counters of a Linux machine, from /proc and /sys below a root that tests can set."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Optional

from ..counters import Counters, CpuTimes, CurrentState, Energy
from .cgroup_hierarchies import list_own_and_parent_groups
from .facts import read_power
from .sysfs import CPU, SYSTEM, read_text

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def read_counters(cpus: Optional[Collection[int]] = None, system: Path = SYSTEM) -> Counters:
    """Return the counters; `cpus`: those whose times and throttling are counted, None = all."""
    tcp = _parse_table(read_text(system / "proc/net/snmp") or "", "Tcp")
    kernel = read_text(system / "proc/net/netstat") or ""
    extended, traffic = _parse_table(kernel, "TcpExt"), _parse_table(kernel, "IpExt")
    return Counters(
        cpus=parse_times(read_text(system / "proc/stat") or "", cpus),
        pressure_s=_parse_pressure_s(read_text(system / "proc/pressure/cpu") or ""),
        segments_sent=tcp.get("OutSegs"),
        segments_resent=tcp.get("RetransSegs"),
        segments_duplicate=extended.get("TCPDSACKRecv"),
        listen_overflows=extended.get("ListenOverflows"),
        listen_drops=extended.get("ListenDrops"),
        swapped_pages=_parse_swapped(read_text(system / "proc/vmstat") or ""),
        throttle_count=_throttle_count(cpus, system),
        quota_periods=_count_quota_periods(system),
        octets_out=_sum_octets(traffic, system, "OutOctets"),
        octets_in=_sum_octets(traffic, system, "InOctets"),
        energy=_read_energy(system),
    )


def read_current_state(system: Path = SYSTEM) -> CurrentState:
    running = re.search(
        r"^procs_running (\d+)", read_text(system / "proc/stat") or "", re.MULTILINE
    )
    source = read_power(system)["power_source"]
    return CurrentState(
        run_queue=max(0, int(running.group(1)) - 1) if running else None,
        on_battery=None if source is None else source == "battery",
        boot_id=read_text(system / "proc/sys/kernel/random/boot_id"),
    )


def parse_times(stat: str, cpus: Optional[Collection[int]]) -> Optional[dict[int, CpuTimes]]:
    """Return the times in the lines "cpu<n>" of /proc/stat (proc(5)).

    Idle time is exact on a tickless kernel. User and system time are sampled once per tick, which
    misses most of a server that works in short bursts.
    """
    cpu_times = {}
    for line in stat.splitlines():
        matched = re.match(r"cpu(\d+) (.+)", line)
        if matched and (cpus is None or int(matched.group(1)) in cpus):
            fields = [int(field) / _TICK for field in matched.group(2).split()]
            _user, _nice, _system, idle, waiting, hard, soft, stolen = fields[:8]
            cpu_times[int(matched.group(1))] = CpuTimes(idle + waiting, hard + soft, stolen)
    return cpu_times or None


def _parse_pressure_s(text: str) -> Optional[float]:
    match = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    return int(match.group(1)) / 1e6 if match else None


def _parse_table(text: str, name: str) -> dict[str, int]:
    """Return a table of /proc/net/{snmp,netstat}: one line with names, one with numbers."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{name}:")]
    return dict(zip(lines[0], map(int, lines[1]))) if len(lines) == 2 else {}


def _parse_swapped(vmstat: str) -> Optional[int]:
    moved = [int(n) for n in re.findall(r"^pswp(?:in|out) (\d+)", vmstat, re.MULTILINE)]
    return sum(moved) if moved else None


def _throttle_count(cpus: Optional[Collection[int]], system: Path) -> Optional[int]:
    """Return the number of thermal throttlings of these CPUs, of cores and packages."""
    folders = (
        sorted(system.glob(f"{CPU}/cpu[0-9]*/thermal_throttle"))
        if cpus is None
        else [system / CPU / f"cpu{cpu}/thermal_throttle" for cpu in cpus]
    )
    names = ("core_throttle_count", "package_throttle_count")
    counts = [read_text(folder / name) for folder in folders for name in names]
    known = [int(count) for count in counts if count and count.isdigit()]
    return sum(known) if known else None


def _count_quota_periods(system: Path) -> Optional[int]:
    """Return how many periods exhausted a quota of the agent's group or a parent group."""
    counts = [
        re.search(r"^nr_throttled (\d+)", read_text(folder / "cpu.stat") or "", re.MULTILINE)
        for folder in list_own_and_parent_groups("cpu", system)
    ]
    known = [int(count.group(1)) for count in counts if count]
    return sum(known) if known else None


def _sum_octets(traffic: dict[str, int], system: Path, name: str) -> Optional[int]:
    """Return the sum of IPv4 and IPv6, including loopback."""
    if name not in traffic:
        return None
    sixth = re.search(
        rf"^Ip6{name}\s+(\d+)", read_text(system / "proc/net/snmp6") or "", re.MULTILINE
    )
    return traffic[name] + (int(sixth.group(1)) if sixth else 0)


def _read_energy(system: Path) -> Optional[dict[str, Energy]]:
    """Return energy by package (Documentation/power/powercap); usually readable for root only."""
    packages = {}
    for zone in sorted(system.glob("sys/class/powercap/intel-rapl:*")):
        joules, wraps_at = (read_text(zone / name) for name in ("energy_uj", "max_energy_range_uj"))
        # `intel-rapl:0:0` is a part of package 0, and `psys` the whole of a laptop.
        is_package = (read_text(zone / "name") or "").startswith("package")
        if is_package and joules and wraps_at:
            packages[zone.name] = Energy(int(joules) / 1e6, int(wraps_at) / 1e6)
    return packages or None


def explain_unknown(system: Path = SYSTEM) -> dict[str, str]:
    """Return why facts of monitoring/environment.py can be unknown here."""
    has_meter = (system / "sys/class/powercap").is_dir() and any(
        system.glob("sys/class/powercap/intel-rapl:*")
    )
    no_pressure = "the kernel does not account for CPU pressure (psi=1 at boot enables it)"
    return {
        "pressure": no_pressure,
        "pressure_share": no_pressure,
        "energy_j": (
            "the energy meters (RAPL) are for root only" if has_meter else "no energy meter (RAPL)"
        ),
        "on_battery": "the system lists no power supply",
        "throttle_count": "not known: only Intel CPUs count thermal throttling",
        "cooling_state": "not known: no cooling device of the CPUs (usual in virtual machines)",
        "clock_limit_mhz": "not known: no driver reports a limit (usual in virtual machines)",
        "clock_base_mhz": "the governor is not performance, or no driver reports the base clock",
        "temperature_c": "no sensor of the CPU can be read (usual in virtual machines)",
        "clock_mhz": "no driver reports the clocks (usual in virtual machines)",
        "quota_periods": "no control group of ours reports a quota",
    }
