"""Monitors a host while a load runs: what its processes use, and the interference by others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..platform.processes import Child, list_helpers
from ..platform.system import read_tree_usage
from .counter_deltas import add_known
from .environment import SHORTEST_S, InterferenceMonitor
from .process_trees import ProcessTrees
from .sampler import Sampler, read_load1


class MonitoredProcesses(NamedTuple):
    """The processes of a trial on one host.

    `port`: that of the server. `tool`: whether the load tool runs here. `cpus`: those in their
    limits; None if one of them has no limit. `logs`: the files with their output.
    """

    server: Optional[Child]
    port: Optional[int]
    services: Sequence[Child]
    tool: bool
    cpus: Optional[frozenset[int]]
    logs: Sequence[Path] = ()

    @property
    def children(self) -> list[Child]:
        return [*self.services, *([self.server] if self.server else [])]


class HostMonitor:
    """Create it just before the load starts; call it often while the load runs, then `end` once.

    `find_changed_settings`: reads the tuning of the host back (Tuning.find_changed).
    """

    def __init__(
        self, monitored: MonitoredProcesses, find_changed_settings: Callable[[], dict[str, str]]
    ) -> None:
        self._monitored = monitored
        self._find_changed_settings = find_changed_settings
        self._load_before = read_load1()
        self._helpers_s = _read_helpers_s()
        self._log_bytes = _sum_sizes(monitored.logs)
        self._processes = ProcessTrees(monitored.children)
        self._services = ProcessTrees(monitored.services)
        self._interference = InterferenceMonitor(monitored.cpus)
        self._sampler = _build_sampler(monitored, self._interference)

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        """Take a sample if one is due, `seconds` after the start; `tool` None: not on this host."""
        if self._sampler:
            self._sampler(tool, seconds)
        else:
            self._interference.sample()

    def end(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """Return "usage" (None without the server) and "samples" of LOADED, and "interference"
        here.

        Also "load_before", and "services_cpu_s" of the services on this host.
        """
        interference = self._end_interference(tool_cpu_s)
        return {
            "usage": self._sampler.usage(tool_cpu_s) if self._sampler else None,
            "samples": self._sampler.samples if self._sampler else [],
            "services_cpu_s": self._services.cpu_s(),
            "load_before": self._load_before,
            "interference": interference,
        }

    def _end_interference(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        processes_s = self._processes.cpu_s() if self._monitored.children else 0.0
        own_s = add_known(processes_s, tool_cpu_s) if self._monitored.tool else processes_s
        own_s = add_known(own_s, max(0.0, _read_helpers_s() - self._helpers_s))
        interference = self._interference.end(own_s, self._processes.pids() | list_helpers())
        log_rate, reasons = self._compute_log_rate(interference["seconds"]), {}
        if log_rate is None:
            reasons["log_bytes_per_s"] = f"the load took less than {SHORTEST_S:g} s"
        return {
            **interference,
            "log_bytes_per_s": log_rate,
            "changed_settings": self._find_changed_settings(),
            "reasons": {**interference["reasons"], **reasons},
        }

    def _compute_log_rate(self, seconds: float) -> Optional[float]:
        """Return the bytes per second that the processes wrote as output; None in short loads."""
        if seconds < SHORTEST_S:
            return None
        return max(0, _sum_sizes(self._monitored.logs) - self._log_bytes) / seconds


def _sum_sizes(paths: Sequence[Path]) -> int:
    """Return the bytes of the files that exist."""
    return sum(path.stat().st_size for path in paths if path.exists())


def _read_helpers_s() -> float:
    """Return the CPU time so far of the helpers that redact output."""
    usage = read_tree_usage(list_helpers())
    return (usage.cpu_s or 0.0) if usage else 0.0


def _build_sampler(
    monitored: MonitoredProcesses, interference: InterferenceMonitor
) -> Optional[Sampler]:
    if monitored.server is None:
        return None
    return Sampler(
        monitored.server,
        port=monitored.port,
        services=monitored.services,
        sensors=interference.sample,
    )
