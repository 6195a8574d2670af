"""Evaluate the objective of a capacity search for one probe, from its reduced rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..readers.request_counter import find_nearest_rank
from ..step.plan import Objective

_OPS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Verdict(NamedTuple):
    """`why`: the value of each objective, or only of the missed ones."""

    passed: bool
    reason: str


class Probe:
    """The result of a probe. `due`: the number of requests at its rate within the window."""

    def __init__(self, rows: Mapping[str, Any], errors: Optional[int], due: float) -> None:
        """`errors`: requests without a response, None if unknown."""
        self._counts = dict(zip(rows["ok"]["value_us"], rows["ok"]["count"]))
        self._good = sum(rows["ok"]["count"])
        self._bad = sum(rows["other"]["count"]) + (errors or 0)
        self._due = due

    @classmethod
    def merge(cls, passes: Sequence[Probe]) -> Probe:
        """Return the result of all passes of a probe together; there is at least one."""
        merged = passes[0]
        for each in passes[1:]:
            merged._add(each)
        return merged

    def value(self, metric: str) -> Optional[float]:
        """Return the metric in seconds or as a share, None if unknown; ValueError by other
        names."""
        if metric == "delivered":
            return self._good / self._due
        if metric == "success":
            return self._good / (self._good + self._bad) if self._good + self._bad else None
        kind, _, name = metric.partition(".")
        if kind != "latency":
            raise ValueError(f"unknown metric of an objective: {metric!r}")
        return self._latency_s(name) if self._good else None

    def _latency_s(self, name: str) -> Optional[float]:
        if name == "mean":
            return sum(us * count for us, count in self._counts.items()) / self._good / 1e6
        percentile = 100.0 if name == "max" else float(name[1:])
        us = find_nearest_rank(sorted(self._counts.items()), self._good, percentile)
        return None if us is None else us / 1e6

    def _add(self, other: Probe) -> None:
        for us, count in other._counts.items():
            self._counts[us] = self._counts.get(us, 0) + count
        self._good += other._good
        self._bad += other._bad
        self._due += other._due


def evaluate(objective: Sequence[Objective], probe: Probe) -> Verdict:
    """Judge the probe: it passes if all terms of the objective hold; an unknown value does not."""
    values = [(term, probe.value(term.metric)) for term in objective]
    missed = [(term, value) for term, value in values if not _holds(term, value)]
    return Verdict(not missed, ", ".join(_describe(*pair) for pair in missed or values))


def _holds(objective: Objective, value: Optional[float]) -> bool:
    if value is None or math.isnan(value):
        return False
    return _OPS[objective.op](value, objective.value)


def _describe(objective: Objective, value: Optional[float]) -> str:
    if value is None:
        return f"{objective.metric} is unknown, as no request succeeded"
    verb = "is" if _holds(objective, value) else "is not"
    return f"{objective.metric} {value:.4g} {verb} {objective.op} {objective.value:g}"
