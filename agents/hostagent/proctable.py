"""What the system says of its processes: /proc on Linux, `ps` elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

HAS_PROC = sys.platform.startswith("linux") and os.path.exists("/proc/self/stat")
NO_PROC = "this system has no /proc"


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    group: int
    session: Optional[int]
    zombie: bool


def snapshot() -> dict[int, Process]:
    """All processes by pid; session is None where the system does not tell."""
    found = _from_proc() if HAS_PROC else _from_ps()
    return {process.pid: process for process in found}


def _from_proc() -> Iterable[Process]:
    for name in os.listdir("/proc"):
        fields = stat_fields(int(name)) if name.isdigit() else None
        if fields:
            state, parent, group, session = fields[0], *map(int, fields[1:4])
            yield Process(int(name), parent, group, session, state in "ZX")


def stat_fields(pid: int) -> Optional[list[str]]:
    """/proc/PID/stat from the state on (field 3 of proc(5)); None once the process is gone."""
    text = read_proc(pid, "stat")
    return text.rpartition(")")[2].split() if text else None


def read_proc(pid: int, name: str) -> Optional[str]:
    try:
        return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace")
    except OSError:
        return None


def _from_ps() -> Iterable[Process]:
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,pgid=,state="],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in listing.stdout.splitlines():
        pid, parent, group, state = line.split()[:4]
        yield Process(int(pid), int(parent), int(group), None, state.startswith("Z"))


def family(table: dict[int, Process], roots: Iterable[int]) -> set[int]:
    """`roots`, their descendants, and whoever shares a session or group with any of them.

    Session and group 0 are those of kernel threads and of processes outside our namespace, and
    our own are never those of a child: neither makes a relative.
    """
    members = set(roots)
    while True:
        sessions = {table[pid].session for pid in members if pid in table} - {None, 0, _session()}
        groups = {table[pid].group for pid in members if pid in table} - {0, os.getpgrp()}
        grown = members | {
            process.pid
            for process in table.values()
            if process.parent in members or process.session in sessions or process.group in groups
        }
        if grown == members:
            return members
        members = grown


def _session() -> int:
    return os.getsid(0)


def marked(variable: str) -> set[int]:
    """Processes of ours whose environment holds `NAME=value` exactly; Linux only, else none."""
    if not HAS_PROC:
        return set()
    wanted = variable.encode()
    return {pid for pid in _pids() if wanted in _environment(pid)} - {os.getpid()}


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
