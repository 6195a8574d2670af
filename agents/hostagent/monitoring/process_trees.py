"""The process trees of a trial, sampled once per second without a search each time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Optional

from ..platform import system
from ..platform.process_table import HAS_PROC
from ..platform.processes import Child
from ..platform.usage import Usage, compute_growth, sum_usages

#: The search for the processes of a tree may use this share of a core. On a host with few processes
#: each sample searches; on a host with thousands most samples use the last result.
SEARCH_SHARE = 0.003


#: The kernel counts in ticks of 10 ms: by this the time of a process and of its parent may differ.
_ROUNDING_S = 0.02


class ProcessTree:
    """One child with all its descendants.

    `ended`: the processes that have ended since the first reading, by the samples. Their CPU time
    counts as that of their parent, if the parent waits for them. If it does not, their last reading
    is kept, so that the total does not fall.
    """

    def __init__(self, child: Child) -> None:
        self.child = child
        self.pids: set[int] = set()
        self.ended: set[int] = set()
        self._first: Optional[frozenset[int]] = None
        self._last: dict[int, Usage] = {}
        self._lost_s = 0.0
        self._newest: Optional[int] = None
        self._next_s = 0.0

    def usage(self) -> Optional[Usage]:
        """Return the usage of its processes so far; None if all have ended."""
        if not HAS_PROC:
            return self.child.usage()
        if self._is_old():
            self.search()
        usages = system.read_usages(self.pids)
        self._count_ended(usages)
        total = sum_usages(list(usages.values()))
        if total is None or total.cpu_s is None:
            return total
        return total._replace(cpu_s=total.cpu_s + self._lost_s)

    @property
    def ended_workers(self) -> int:
        """Return the number of ended processes that existed at the first reading."""
        return len(self.ended & (self._first or frozenset()))

    def _count_ended(self, usages: dict[int, Usage]) -> None:
        if self._first is None:
            self._first = frozenset(usages)
        gone = self._last.keys() - usages.keys()
        if gone:
            self.ended |= gone
            used_s = sum(max(0.0, (self._last[pid].cpu_s or 0.0) - _ROUNDING_S) for pid in gone)
            waited_s = sum(usage.waited_s or 0.0 for usage in usages.values()) - sum(
                self._last[pid].waited_s or 0.0 for pid in self._last.keys() - gone
            )
            self._lost_s += max(0.0, used_s - waited_s)
        self._last = usages

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
