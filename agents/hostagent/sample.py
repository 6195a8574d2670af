"""Samples at 1 Hz while a load runs: CPU and memory of the server's and the tool's trees."""

from __future__ import annotations

import os
from typing import Any, Optional

from .processes import Child
from .proctable import HAS_PROC, NO_PROC
from .usage import Usage, of_tree, stolen_s

PERIOD_S = 1.0
#: Fields of Usage that only grow.
COUNTED = ("voluntary_switches", "involuntary_switches", "read_bytes", "written_bytes")


class Sampler:
    """Made just before the load starts; call it often while the load runs, then `usage` once."""

    def __init__(self, server: Child) -> None:
        self._server = server
        self._before = of_tree(server.tree())
        self._stolen = stolen_s()
        self._next_s = 0.0
        self.samples: list[dict[str, Any]] = []
        self.load_before = _load1()

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        """Take a sample if one is due, `seconds` after the load began; `tool` None = elsewhere."""
        if seconds < self._next_s:
            return
        self._next_s += PERIOD_S
        server = of_tree(self._server.tree())
        load = of_tree(tool.tree()) if tool else None
        self.samples.append(
            {
                "t": round(seconds, 3),
                "server_cpu_s": _grown(self._before, server, "cpu_s"),
                "server_rss_bytes": server.rss_bytes if server else None,
                "tool_cpu_s": load.cpu_s if load else None,
                "server_switches": _sum_grown(
                    self._before, server, "voluntary_switches", "involuntary_switches"
                ),
                "server_io_bytes": _sum_grown(self._before, server, "read_bytes", "written_bytes"),
                "temperature_c": None,
                "clock_mhz": None,
            }
        )

    def usage(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """What the whole load cost; null with a reason where the system does not tell."""
        after = of_tree(self._server.tree())
        stolen = stolen_s()
        known = {
            "server_cpu_s": _grown(self._before, after, "cpu_s"),
            "tool_cpu_s": tool_cpu_s,
            "server_peak_rss_bytes": after.peak_rss_bytes if after else None,
            **{f"server_{name}": _grown(self._before, after, name) for name in COUNTED},
            "steal_s": None if stolen is None or self._stolen is None else stolen - self._stolen,
        }
        why = "the server was gone" if HAS_PROC else NO_PROC
        reasons = {key: why for key, value in known.items() if value is None}
        return {**known, "reasons": reasons}


def _grown(before: Optional[Usage], after: Optional[Usage], name: str) -> Any:
    """The growth in between; None where a process of the tree ended and took its count along."""
    was, now = getattr(before, name, None), getattr(after, name, None)
    return None if was is None or now is None or now < was else now - was


def _sum_grown(before: Optional[Usage], after: Optional[Usage], *names: str) -> Any:
    parts = [_grown(before, after, name) for name in names]
    return None if None in parts else sum(parts)


def _load1() -> Optional[float]:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None
