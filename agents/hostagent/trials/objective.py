"""Whether one probe of a search meets its objective: from its reduced rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..readers.request_counter import nearest_rank
from ..step.plan import Objective

_OPS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Verdict(NamedTuple):
    """`why`: what was found, of each objective, or of those that were missed."""

    passed: bool
    why: str


class Probe:
    """What a probe came to. `due`: requests that the rate asked for within the window."""

    def __init__(self, rows: Mapping[str, Any], errors: Optional[int], due: float) -> None:
        """`errors`: requests without any answer, None where that is not known."""
        self._pairs = list(zip(rows["ok"]["value_us"], rows["ok"]["count"]))
        self._good = sum(rows["ok"]["count"])
        self._bad = sum(rows["other"]["count"]) + (errors or 0)
        self._due = due

    def value(self, metric: str) -> Optional[float]:
        """In seconds or as a share; None where there is none. ValueError: no such metric."""
        if metric == "delivered":
            return self._good / self._due
        if metric == "success":
            return self._good / (self._good + self._bad) if self._good + self._bad else None
        kind, _, name = metric.partition(".")
        if kind != "latency":
            raise ValueError(f"no objective is called {metric!r}")
        return self._latency_s(name) if self._good else None

    def _latency_s(self, name: str) -> Optional[float]:
        if name == "mean":
            return sum(us * count for us, count in self._pairs) / self._good / 1e6
        percentile = 100.0 if name == "max" else float(name[1:])
        us = nearest_rank(self._pairs, self._good, percentile)
        return None if us is None else us / 1e6


def judge(objective: Sequence[Objective], probe: Probe) -> Verdict:
    """Passed if all of them hold; what is not known does not."""
    found = [(each, probe.value(each.metric)) for each in objective]
    missed = [(each, value) for each, value in found if not _holds(each, value)]
    return Verdict(not missed, ", ".join(_told(*each) for each in missed or found))


def _holds(objective: Objective, value: Optional[float]) -> bool:
    if value is None or math.isnan(value):
        return False
    return _OPS[objective.op](value, objective.value)


def _told(objective: Objective, value: Optional[float]) -> str:
    if value is None:
        return f"{objective.metric} is unknown, as nothing was answered well"
    verb = "is" if _holds(objective, value) else "is not"
    return f"{objective.metric} {value:.4g} {verb} {objective.op} {objective.value:g}"
