"""A host while a load runs: what the parts there use, and what else goes on beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from .processes import Child
from .sample import Sampler, load1
from .trees import Trees


class Cast(NamedTuple):
    """The parts of a trial that run on one host; `port` is the server's."""

    server: Optional[Child] = None
    port: Optional[int] = None
    services: Sequence[Child] = ()


class Sampling:
    """Made just before the load starts; call it often while the load runs, then `end` once."""

    def __init__(self, cast: Cast) -> None:
        self._load_before = load1()
        self._services = Trees(cast.services) if cast.server is None else None
        self._sampler = (
            Sampler(cast.server, port=cast.port, services=cast.services) if cast.server else None
        )

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        """Take a sample if one is due, `seconds` after the load began; no `tool` = not here."""
        if self._sampler:
            self._sampler(tool, seconds)

    def end(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """ "usage" (None without the server) and "samples" of LOADED, "load_before", "ambient",
        and "services_cpu_s" of the services here."""
        usage = self._sampler.usage(tool_cpu_s) if self._sampler else None
        own = self._services.cpu_s() if self._services else None
        return {
            "usage": usage,
            "samples": self._sampler.samples if self._sampler else [],
            "services_cpu_s": usage["services_cpu_s"] if usage else own,
            "load_before": self._load_before,
            "ambient": {},
        }
