"""What Pitwall's services use in a window of time: CPU time, statements, tasks."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.operations.counts import load_counts
from orchestrator.operations.heartbeats import EVERY_S
from perf.harness.service_cpu import Services, subtract
from perf.harness.statement_log import StatementLog

#: Each process passes on its counters in this time.
COUNTED_S = EVERY_S + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetUsage:
    """`cpu_s`: CPU seconds of each service. `began_at`, `ended_at`: Unix seconds."""

    began_at: float
    ended_at: float
    cpu_s: Mapping[str, float]
    statements: int
    tasks: Mapping[str, float]

    @property
    def minutes(self) -> float:
        return (self.ended_at - self.began_at) / 60

    @property
    def percent_of_a_core(self) -> float:
        return 100 * sum(self.cpu_s.values()) / (60 * self.minutes)


class FleetMeter:
    """Measures from `begin` to `end`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._log = StatementLog()
        self.begin()

    def begin(self) -> None:
        self._began_at = time.time()
        self._cpu_s = self._services.cpu_s()
        self._statements = self._log.count()
        self._tasks = _load_tasks()

    def end(self) -> FleetUsage:
        return FleetUsage(
            began_at=self._began_at,
            ended_at=time.time(),
            cpu_s=subtract(self._cpu_s, self._services.cpu_s()),
            statements=self._log.count() - self._statements,
            tasks=_subtract(_load_tasks(), self._tasks),
        )

    def measure(self, seconds: float) -> FleetUsage:
        self.begin()
        time.sleep(seconds)
        return self.end()


def _load_tasks() -> dict[str, float]:
    """Return how many tasks of each name were executed."""
    tasks: dict[str, float] = defaultdict(float)
    for (name, labels), value in load_counts().items():
        if name == "pitwall_task_seconds_bucket":
            tasks[dict(labels)["task"]] += value
    return dict(tasks)


def _subtract(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: value - before.get(name, 0) for name, value in after.items()}
