"""What every reader gives: one figure a row, with all that tells it from the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from orchestrator.importers.units import convert
from orchestrator.loadtools.metrics import metric_for

Better = Literal["higher", "lower", ""]
Scalar = str | int | float | bool
#: A value, or None with what stood in its place.
Figure = tuple[float | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure.

    A `metric` of our registry is in our unit; any other keeps its name and its unit. `value` is
    None where it is unknown, and `sentinel` is what stood in its place (`-1.0`, `null`).
    `environment` names the machine; `commit` is whatever names the version that was measured.
    """

    metric: str
    value: float | None
    sentinel: str = ""
    unit: str = ""
    better: Better = ""
    statistic: str = ""
    suite: str = ""
    environment: str = ""
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    measured_at: datetime | None = None
    commit: str = ""


def row(metric: str, figure: Figure, unit: str, **told: Any) -> Row:
    """A row of a figure as it came; a metric of ours is brought into our unit and direction.

    ValueError where the unit cannot be brought into ours.
    """
    value, sentinel = figure
    ours = metric_for(metric)
    if ours is None:
        return Row(metric=metric, value=value, sentinel=sentinel, unit=unit, **told)
    if value is not None:
        value = convert(value, unit, ours.unit)
    known = {**told, "unit": ours.unit, "better": ours.better}
    return Row(metric=metric, value=value, sentinel=sentinel, **known)
