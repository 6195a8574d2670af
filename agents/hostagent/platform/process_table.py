"""An entry of the process table, and the family of a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import NamedTuple, Optional

HAS_PROC = sys.platform.startswith("linux") and os.path.exists("/proc/self/stat")


class Process(NamedTuple):
    """`session` is None if the system does not report it."""

    pid: int
    parent: int
    group: int
    session: Optional[int]
    zombie: bool


#: All processes by pid.
ProcessTable = dict[int, Process]


def find_family(table: ProcessTable, roots: Iterable[int]) -> set[int]:
    """Return `roots`, their descendants, and all processes that share a session or group with them.

    Two sessions and groups are ignored. 0 belongs to kernel threads and processes outside this
    namespace, and those of the agent never belong to a child.
    """
    members = set(roots)
    while True:
        sessions = {table[pid].session for pid in members if pid in table}
        sessions -= {None, 0, os.getsid(0)}
        groups = {table[pid].group for pid in members if pid in table} - {0, os.getpgrp()}
        growth = members | {
            process.pid
            for process in table.values()
            if process.parent in members or process.session in sessions or process.group in groups
        }
        if growth == members:
            return members
        members = growth
