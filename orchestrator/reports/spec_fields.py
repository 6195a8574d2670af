"""Field types and checks that the parts of a report's specification share. No Django."""

import re
from typing import Annotated

from pydantic import Field

from orchestrator.benchmarks.choice import compile_condition
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.metrics import Metric, find_metric
from orchestrator.reports.units import SCALES, list_units

Text = Annotated[str, Field(max_length=200)]
Expression = Annotated[str, Field(max_length=2000)]

_PERCENTILE = re.compile(r"latency\.p(\d{1,2}(?:\.\d{1,4})?)\Z")


def parse_percentile(key: str) -> float | None:
    """Return 99.5 for `latency.p99.5`; None if the key is not a percentile of the latency."""
    match = _PERCENTILE.match(key)
    return float(match[1]) if match and 0 < float(match[1]) < 100 else None


def find_known_metric(key: str) -> Metric | None:
    """Return the metric of a key, including any percentile of the latency."""
    metric = find_metric(key)
    percentile = parse_percentile(key)
    if metric is None and percentile is not None:
        title = f"Latency p{percentile:g}"
        return Metric(key=key, title=title, unit="s", better="lower", margin=0.05)
    return metric


def find_metric_problem(key: str, statistic: str, unit: str | None) -> str:
    """Return why this metric cannot be shown in this way; empty if it can."""
    info = find_known_metric(key)
    if info is None:
        return f"metric: there is no metric {key}; percentiles are written as latency.p99.5"
    if statistic == "merged" and parse_percentile(key) is None:
        return "statistic: only percentiles of the latency can be read from merged trials"
    if unit is not None and unit not in SCALES.get(info.unit, {info.unit: 1}):
        known = ", ".join(each or '""' for each in list_units(info.unit))
        return f"unit: expected one of {known}, got {unit!r}"
    return ""


def check_condition(expression: str, where: str) -> None:
    """Raise ValueError, with the field `where`, if the expression cannot be parsed."""
    try:
        compile_condition(expression)
    except InvalidRequestError as error:
        raise ValueError(f"{where}: {str(error).removeprefix('cases: ')}") from error
