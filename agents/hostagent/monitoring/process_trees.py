"""The process trees of a trial, sampled once per second without a search each time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Optional

from ..platform import system
from ..platform.process_table import HAS_PROC
from ..platform.processes import Child
from ..platform.usage import Usage, compute_growth

#: The search for the processes of a tree may use this share of a core. On a host with few processes
#: each sample searches; on a host with thousands most samples use the last result.
SEARCH_SHARE = 0.003


class ProcessTree:
    """One child with all its descendants."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.pids: set[int] = set()
        self._newest: Optional[int] = None
        self._next_s = 0.0

    def usage(self) -> Optional[Usage]:
        """Return the usage of its processes so far; None if all have ended."""
        if not HAS_PROC:
            return self.child.usage()
        if self._is_old():
            self.search()
        return system.read_tree_usage(self.pids)

    def search(self) -> None:
        """Search its current pids."""
        self._newest, start_s = system.read_newest_pid(), time.process_time()
        self.pids = self.child.tree()
        self._next_s = time.monotonic() + (time.process_time() - start_s) / SEARCH_SHARE

    def _is_old(self) -> bool:
        """Return whether a process was started since the last search, and a search may run."""
        return time.monotonic() >= self._next_s and system.read_newest_pid() != self._newest


class ProcessTrees:
    """The common usage of several children from now on."""

    def __init__(self, children: Iterable[Child]) -> None:
        self._trees = [ProcessTree(child) for child in children]
        self._before = [tree.usage() for tree in self._trees]

    def cpu_s(self) -> Optional[float]:
        """Return CPU time since the creation; None without children, or if one is unknown."""
        for tree in self._trees:
            tree.search()
        after = [tree.usage() for tree in self._trees]
        spent = [compute_growth(*pair, "cpu_s") for pair in zip(self._before, after)]
        return None if None in spent or not spent else sum(spent)

    def pids(self) -> set[int]:
        """Return the processes of the children that `cpu_s` has found."""
        return set().union(*(tree.pids for tree in self._trees))
