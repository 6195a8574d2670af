"""Samples once per second while a load runs: resource usage of the server and the load tool."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Optional

from ..platform import system
from ..platform.processes import Child
from ..platform.usage import Usage, compute_growth
from .process_trees import ProcessTree, ProcessTrees

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

PERIOD_S = 1.0
#: A sample of a server with a thousand processes takes long. Then samples are rarer, so that they
#: use at most this share of a core.
SAMPLE_SHARE = 0.02
_SWITCHES = ("voluntary_switches", "involuntary_switches")
_MOVED = ("read_bytes", "written_bytes")
#: Temperature and clock of the CPUs.
Sensors = Callable[[], "tuple[Optional[float], Optional[float]]"]


class ToolMonitor:
    """CPU and memory of the load tool on the host where it runs; call it once per second."""

    def __init__(self) -> None:
        self.readings: list[tuple[float, Optional[float]]] = []
        self._tree: Optional[ProcessTree] = None
        self._peak: Optional[int] = None

    def __call__(self, tool: Child, seconds: float) -> Optional[float]:
        """Return CPU seconds so far."""
        if self._tree is None or self._tree.child is not tool:
            self._tree = ProcessTree(tool)
        usage = self._tree.usage()
        cpu_s = usage.cpu_s if usage else None
        self.readings.append((seconds, cpu_s))
        if usage and usage.peak_rss_bytes is not None:
            self._peak = max(self._peak or 0, usage.peak_rss_bytes)
        return cpu_s

    def cpu_s_at(self, seconds: float) -> Optional[float]:
        """Return the reading nearest to that time; None without readings."""
        if not self.readings:
            return None
        return min(self.readings, key=lambda reading: abs(reading[0] - seconds))[1]

    @property
    def peak_rss_bytes(self) -> Optional[int]:
        """The highest sampled peak, or the peak at its end if that was higher."""
        last = getattr(self._tree.child, "peak_rss_bytes", None) if self._tree else None
        # It counts from the fork on, when the child was as large as the agent.
        if last is not None and last > _read_own_peak_bytes():
            return max(last, self._peak or 0)
        return self._peak


class Sampler:
    """Create it just before the load starts; call it often while the load runs, then `usage` once.

    `port`: that of the server. `services`: those on this host. `sensors`: reads temperature and
    clock (InterferenceMonitor.sample), so that both are read only once.
    """

    def __init__(
        self,
        server: Child,
        *,
        port: Optional[int] = None,
        services: Sequence[Child] = (),
        sensors: Optional[Sensors] = None,
    ) -> None:
        self._server = ProcessTree(server)
        self._services = ProcessTrees(services)
        self._port = port
        self._sensors = sensors or (lambda: (system.read_temperature_c(), system.read_clock_mhz()))
        self._tool = ToolMonitor()
        self._stolen = system.read_stolen_s()
        self._next_s = 0.0
        self.samples: list[dict[str, Any]] = []
        self.load_before = read_load1()
        self._before = self._server.usage()
        self._own_before_s = self._own_s = time.process_time()

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        """Take a sample if one is due, `seconds` after the start; `tool` None: not on this host."""
        # The CPU time of the agent after the end of the tool does not disturb it.
        self._own_s = time.process_time()
        if seconds < self._next_s:
            return
        began_s = self._own_s
        server = self._server.usage()
        temperature_c, clock_mhz = self._sensors()
        self.samples.append(
            {
                "t": round(seconds, 3),
                "server_cpu_s": compute_growth(self._before, server, "cpu_s"),
                "server_rss_bytes": server.rss_bytes if server else None,
                "tool_cpu_s": self._tool(tool, seconds) if tool else None,
                "server_switches": self._total_growth(server, _SWITCHES),
                "server_io_bytes": self._total_growth(server, _MOVED),
                "temperature_c": temperature_c,
                "clock_mhz": clock_mhz,
                "connections": None if self._port is None else system.count_established(self._port),
            }
        )
        cost_s = time.process_time() - began_s
        self._next_s += max(PERIOD_S, cost_s / SAMPLE_SHARE)

    def _compute_growth(self, server: Optional[Usage], name: str) -> Any:
        """Return the growth of a field; None if a part of it was lost with an ended process."""
        is_lost = self._server.ended and name in _SWITCHES + _MOVED
        return None if is_lost else compute_growth(self._before, server, name)

    def _total_growth(self, server: Optional[Usage], names: tuple[str, ...]) -> Optional[int]:
        parts = [self._compute_growth(server, name) for name in names]
        return None if None in parts else sum(parts)

    def usage(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """Return the usage of the whole load; null with a reason if unknown."""
        self._server.search()
        after = self._server.usage()
        stolen = system.read_stolen_s()
        known = {
            "server_cpu_s": compute_growth(self._before, after, "cpu_s"),
            "tool_cpu_s": tool_cpu_s,
            "services_cpu_s": self._services.cpu_s(),
            "server_peak_rss_bytes": after.peak_rss_bytes if after else None,
            "tool_peak_rss_bytes": self._tool.peak_rss_bytes,
            **{f"server_{name}": self._compute_growth(after, name) for name in _SWITCHES + _MOVED},
            "steal_s": None if stolen is None or self._stolen is None else stolen - self._stolen,
            "sampler_cpu_s": self._own_s - self._own_before_s,
            "ended_workers": self._server.ended_workers,
        }
        reasons = {key: self._reason(key, after) for key, value in known.items() if value is None}
        return {**known, "reasons": reasons}

    def _reason(self, key: str, after: Optional[Usage]) -> str:
        reasons = {
            "steal_s": "this system does not count the time that a hypervisor takes",
            "tool_cpu_s": "the load tool ran on another host, or was not waited for",
            "tool_peak_rss_bytes": "the load tool ran on another host, or ended before a sample",
            "services_cpu_s": "no service ran on this host, or one ended under load",
        }
        if key in reasons:
            return reasons[key]
        field = key.partition("_")[2]
        if self._before is None or after is None:
            return "the server had ended"
        if getattr(after, field) is None:
            return system.UNKNOWN.get(field, "this system does not report it")
        return "a process of the server ended, and its counters were lost"


def read_load1() -> Optional[float]:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _read_own_peak_bytes() -> int:
    if resource is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
