"""The CPU time of each of Pitwall's services."""

from __future__ import annotations

import time
from collections.abc import Mapping

from perf.harness.processes import list_children, sum_tree_cpu_s

#: Patterns that identify the process of each service by its command line.
SIGNS = {
    "web": ("gunicorn",),
    "worker": ("celery", "worker"),
    "background": ("orchestrator.config.background_worker",),
    "beat": ("celery", "beat"),
    "PostgreSQL": ("postgres",),
    "Redis": ("-server",),
}
#: These count as the controller's CPU time; the alternatives have no equivalent of the others.
CONTROLLER = ("worker", "background", "beat")


class Services:
    """The services below the process that started them; external ones are not included.

    `pids`: the main process of each.
    """

    def __init__(self, stack_pid: int) -> None:
        children = list_children(stack_pid)
        self.pids = {
            name: pid
            for name, signs in SIGNS.items()
            for pid, line in children.items()
            if all(sign in line for sign in signs)
        }

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds so far, including ended processes below a service."""
        return {name: sum_tree_cpu_s(pid) for name, pid in self.pids.items()}

    def idle(self, seconds: float) -> dict[str, float]:
        """Return the CPU seconds per second of each service while nothing is to be done."""
        before = self.cpu_s()
        time.sleep(seconds)
        return {name: used / seconds for name, used in subtract(before, self.cpu_s()).items()}


def subtract(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}
