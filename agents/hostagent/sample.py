"""Samples at 1 Hz while a load runs: what the trees of server and load tool use of the host."""

from __future__ import annotations

import os
from typing import Any, Optional

from . import system
from .processes import Child
from .usage import Usage, grown

PERIOD_S = 1.0
_SWITCHES = ("voluntary_switches", "involuntary_switches")
_MOVED = ("read_bytes", "written_bytes")


class Sampler:
    """Made just before the load starts; call it often while the load runs, then `usage` once."""

    def __init__(self, server: Child) -> None:
        self._server = server
        self._before = server.usage()
        self._stolen = system.stolen_s()
        self._next_s = 0.0
        self.samples: list[dict[str, Any]] = []
        self.load_before = load1()

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        """Take a sample if one is due, `seconds` after the load began; no `tool` = not here."""
        if seconds < self._next_s:
            return
        self._next_s += PERIOD_S
        server = self._server.usage()
        load = tool.usage() if tool else None
        self.samples.append(
            {
                "t": round(seconds, 3),
                "server_cpu_s": grown(self._before, server, "cpu_s"),
                "server_rss_bytes": server.rss_bytes if server else None,
                "tool_cpu_s": load.cpu_s if load else None,
                "server_switches": self._sum(server, _SWITCHES),
                "server_io_bytes": self._sum(server, _MOVED),
                "temperature_c": system.temperature_c(),
                "clock_mhz": system.clock_mhz(),
            }
        )

    def _sum(self, server: Optional[Usage], names: tuple[str, ...]) -> Optional[int]:
        parts = [grown(self._before, server, name) for name in names]
        return None if None in parts else sum(parts)

    def usage(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """What the whole load cost; null with a reason where the system does not tell."""
        after = self._server.usage()
        stolen = system.stolen_s()
        known = {
            "server_cpu_s": grown(self._before, after, "cpu_s"),
            "tool_cpu_s": tool_cpu_s,
            "server_peak_rss_bytes": after.peak_rss_bytes if after else None,
            **{f"server_{name}": grown(self._before, after, name) for name in _SWITCHES + _MOVED},
            "steal_s": None if stolen is None or self._stolen is None else stolen - self._stolen,
        }
        reasons = {key: self._why(key, after) for key, value in known.items() if value is None}
        return {**known, "reasons": reasons}

    def _why(self, key: str, after: Optional[Usage]) -> str:
        if key == "steal_s":
            return "this system does not count what a hypervisor takes"
        if key == "tool_cpu_s":
            return "the load tool ran on another host, or was not waited for"
        field = key.partition("_")[2]
        if self._before is None or after is None:
            return "the server was gone"
        if getattr(after, field) is None:
            return system.UNKNOWN.get(field, "this system does not tell")
        return "a process of the server ended and took its count along"


def load1() -> Optional[float]:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None
