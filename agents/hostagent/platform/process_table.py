"""What a system says of its processes, and who of them belongs together."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import NamedTuple, Optional

HAS_PROC = sys.platform.startswith("linux") and os.path.exists("/proc/self/stat")


class Process(NamedTuple):
    """`session` is None where the system does not tell it."""

    pid: int
    parent: int
    group: int
    session: Optional[int]
    zombie: bool


def family(table: dict[int, Process], roots: Iterable[int]) -> set[int]:
    """`roots`, their descendants, and whoever shares a session or group with any of them.

    Session and group 0 are those of kernel threads and of processes outside our namespace, and
    our own are never those of a child: neither makes a relative.
    """
    members = set(roots)
    while True:
        sessions = {table[pid].session for pid in members if pid in table}
        sessions -= {None, 0, os.getsid(0)}
        groups = {table[pid].group for pid in members if pid in table} - {0, os.getpgrp()}
        grown = members | {
            process.pid
            for process in table.values()
            if process.parent in members or process.session in sessions or process.group in groups
        }
        if grown == members:
            return members
        members = grown
