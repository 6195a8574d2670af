"""All hosts of a trial while a load runs, as the lead sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Optional, Union

from ..monitoring.host_monitor import Sampling
from ..platform.processes import Child
from ..step.plan import Trial
from .remote_host import RemoteSampling

AnySampling = Union[Sampling, RemoteSampling]


class Everywhere:
    """The sampling of each host of a trial, by its label."""

    def __init__(self, hosts: Mapping[str, AnySampling], trial: Trial, lead: str) -> None:
        self._hosts = hosts
        self._trial = trial
        self._lead = lead

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        for sampling in self._hosts.values():
            sampling(tool, seconds)

    def end(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """ "usage", "samples", "ambient" of LOADED, and "load_before" of the two that matter."""
        found = {label: sampling.end(tool_cpu_s) for label, sampling in self._hosts.items()}
        server = found[self._trial.server.on]
        return {
            "usage": _with_services(server["usage"], found, {s.on for s in self._trial.services}),
            "samples": server["samples"],
            "ambient": {label: part["ambient"] for label, part in found.items()},
            "load_before": _highest([server["load_before"], found[self._lead]["load_before"]]),
        }


def _with_services(
    usage: dict[str, Any], found: Mapping[str, dict[str, Any]], hosts: Collection[str]
) -> dict[str, Any]:
    """What the services used on all the hosts where there are any."""
    spent = [found[label]["services_cpu_s"] for label in hosts]
    if not spent:
        return usage
    if None in spent:
        why = "one of several hosts with services could not tell"
        reasons = {"services_cpu_s": why, **usage["reasons"]}
        return {**usage, "services_cpu_s": None, "reasons": reasons}
    reasons = {key: why for key, why in usage["reasons"].items() if key != "services_cpu_s"}
    return {**usage, "services_cpu_s": sum(spent), "reasons": reasons}


def _highest(loads: Iterable[Optional[float]]) -> Optional[float]:
    return max((load for load in loads if load is not None), default=None)
