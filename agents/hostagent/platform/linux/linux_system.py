"""The processes of a Linux host, from /proc; see platform/system.py for the interface."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from ..counters import Consumer
from ..process_table import Process
from ..usage import Usage
from .counters import explain_unknown, read_counters, read_current_state
from .facts import read_clock_mhz, read_facts, read_temperature_c, read_temperatures
from .sockets import are_ports_exhausted, count_established, count_local_ports
from .sysfs import read_text
from .throttling import read_held_clock_mhz, read_throttling
from .topology import read_topology

__all__ = [
    "UNKNOWN",
    "are_ports_exhausted",
    "count_established",
    "count_local_ports",
    "explain_unknown",
    "find_marked",
    "read_clock_mhz",
    "read_consumers",
    "read_counters",
    "read_current_state",
    "read_facts",
    "read_held_clock_mhz",
    "read_newest_pid",
    "read_process_table",
    "read_stolen_s",
    "read_temperature_c",
    "read_temperatures",
    "read_throttling",
    "read_topology",
    "read_usages",
]
#: Reading a thread takes 20 to 50 us, once per second. A process with more threads is read as a
#: whole: its CPU time in units of 10 ms, and no switches.
MOST_THREADS = 200
#: Why a field of Usage can be unknown here.
_MANY_THREADS = "a process has too many threads to read them one by one"
UNKNOWN = {
    "voluntary_switches": _MANY_THREADS,
    "involuntary_switches": _MANY_THREADS,
    "read_bytes": "this user may not read /proc/PID/io of the server",
    "written_bytes": "this user may not read /proc/PID/io of the server",
}


def read_process_table() -> dict[int, Process]:
    """Return all processes by pid."""
    processes = {}
    for pid in _list_pids():
        fields = read_stat_fields(pid)
        if fields:
            state, (parent, group, session) = fields[0], map(int, fields[1:4])
            processes[pid] = Process(pid, parent, group, session, state in "ZX")
    return processes


def read_stat_fields(pid: int) -> Optional[list[str]]:
    """Return /proc/PID/stat from the state on (field 3 of proc(5)); None if the process is gone."""
    text = _read_proc(pid, "stat")
    return text.rpartition(")")[2].split() if text else None


def read_newest_pid() -> Optional[int]:
    """Return the last assigned pid or thread id; it changes when a process is started."""
    words = (read_text(Path("/proc/loadavg")) or "").split()
    return int(words[4]) if len(words) > 4 else None


def read_consumers() -> dict[int, Consumer]:
    """Return all processes by pid, with their CPU time and that of children they waited for."""
    processes = {}
    for pid in _list_pids():
        text = _read_proc(pid, "stat")
        if text:
            start, _, rest = text.rpartition(")")
            fields = rest.split()
            used_s = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            name = start.partition("(")[2]
            processes[pid] = Consumer(name, int(fields[1]), used_s, int(fields[36]))
    return processes


def find_marked(variable: str) -> set[int]:
    """Return our processes whose environment has exactly `NAME=value`."""
    wanted = variable.encode()
    return {pid for pid in _list_pids() if wanted in _read_environment(pid)} - {os.getpid()}


def _list_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read_environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def read_usages(pids: Iterable[int]) -> dict[int, Usage]:
    """Return the usage so far of each living process of `pids`."""
    return {pid: usage for pid in pids if (usage := _process_usage(pid)) is not None}


def _process_usage(pid: int) -> Optional[Usage]:
    fields, status = read_stat_fields(pid), _read_proc(pid, "status")
    if not fields or not status:
        return None
    is_read = (_number(status, "Threads") or 0) <= MOST_THREADS
    threads = _list_thread_ids(pid) if is_read else []
    voluntary, involuntary = _count_switches(pid, threads, status) if is_read else (None, None)
    moved = _read_proc(pid, "io")
    waited_s = sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
    return Usage(
        cpu_s=_compute_cpu_s(pid, threads, fields) + waited_s,
        waited_s=waited_s,
        rss_bytes=1024 * (_number(status, "VmRSS") or 0),
        peak_rss_bytes=1024 * (_number(status, "VmHWM") or 0),
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
        read_bytes=_number(moved, "read_bytes") if moved else None,
        written_bytes=_number(moved, "write_bytes") if moved else None,
    )


def _compute_cpu_s(pid: int, threads: list[str], stat: list[str]) -> float:
    """Return the CPU time of the process, without that of its children.

    `stat` includes ended threads, but in units of 10 ms, rounded down; `schedstat` counts
    nanoseconds, but only of living threads. Neither is too high, so the larger one is better.
    """
    user, system = map(int, stat[11:13])
    tick = os.sysconf("SC_CLK_TCK")
    texts = [_read_proc(pid, f"task/{thread}/schedstat") for thread in threads]
    scheduled_s = sum(int(text.split()[0]) for text in texts if text) / 1e9
    return max((user + system) / tick, scheduled_s)


def _count_switches(pid: int, threads: list[str], status: str) -> tuple[int, int]:
    """Return voluntary and involuntary switches; the process status has only the first thread's."""
    others = [thread for thread in threads if thread != str(pid)]
    texts = [status, *filter(None, (_read_proc(pid, f"task/{thread}/status") for thread in others))]
    return (
        _sum(texts, "voluntary_ctxt_switches"),
        _sum(texts, "nonvoluntary_ctxt_switches"),
    )


def _list_thread_ids(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _sum(texts: list[str], key: str) -> int:
    return sum(_number(text, key) or 0 for text in texts)


def _number(text: str, key: str) -> Optional[int]:
    """Return the number after `key:` at the start of a line."""
    _, separator, rest = f"\n{text}".partition(f"\n{key}:")
    return int(rest.split(None, 1)[0]) if separator else None


def read_stolen_s() -> Optional[float]:
    """Return the time that the hypervisor took from this machine since boot; None if unknown."""
    cpu = (read_text(Path("/proc/stat")) or "").partition("\n")[0].split()
    return int(cpu[8]) / os.sysconf("SC_CLK_TCK") if len(cpu) > 8 else None


def _read_proc(pid: int, name: str) -> Optional[str]:
    """Return a file of /proc/PID; None if the process is gone. Fast: a sample reads dozens."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", 0) as file:
            return file.read().decode("utf-8", "replace") or None
    except OSError:
        return None
