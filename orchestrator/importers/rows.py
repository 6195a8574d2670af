"""The result of every reader: one value per row, with all fields that identify it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from orchestrator.importers.units import convert
from orchestrator.loadtools.metrics import find_metric

Better = Literal["higher", "lower", ""]
Scalar = str | int | float | bool
#: A value, or None with the text in its place.
Figure = tuple[float | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One value.

    A `metric` of our registry is in our unit; any other keeps its name and unit. `value` is None if
    it is unknown, and `sentinel` is the text in its place (`-1.0`, `null`). `environment` names the
    machine; `commit` is any name of the measured version. `branch`, `subject`, `author` and
    `committed_at` are what the file says about the commit.
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
    branch: str = ""
    subject: str = ""
    author: str = ""
    committed_at: datetime | None = None


def build_row(metric: str, figure: Figure, unit: str, **fields: Any) -> Row:
    """Return a row; a metric of ours is converted to our unit and direction.

    Raise ValueError if the unit cannot be converted.
    """
    value, sentinel = figure
    ours = find_metric(metric)
    if ours is None:
        return Row(metric=metric, value=value, sentinel=sentinel, unit=unit, **fields)
    if value is not None:
        value = convert(value, unit, ours.unit)
    known = {**fields, "unit": ours.unit, "better": ours.better}
    return Row(metric=metric, value=value, sentinel=sentinel, **known)
