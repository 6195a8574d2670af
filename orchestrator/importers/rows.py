"""The result of every reader: one value per row, with all fields that identify it."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.units import convert
from orchestrator.loadtools.metrics import find_metric

#: Limits of a file.
MOST_ROWS = 1_000_000
MOST_PARAMETERS = 100
LONGEST_NAME = 4_000

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
    known = {**fields, "unit": unit}
    if ours is not None:
        known |= {"unit": ours.unit, "better": ours.better}
        value = None if value is None else convert(value, unit, ours.unit)
    if value is not None and not math.isfinite(value):
        value, sentinel = None, str(value)
    return Row(metric=metric, value=value, sentinel=sentinel, **known)


def limit_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows; raise InvalidRequestError beyond the limits of a file.

    Small files can have many rows, and all of them can share one long name.
    """
    for number, row in enumerate(rows, 1):
        if number > MOST_ROWS:
            raise InvalidRequestError(
                f"a file has at most {MOST_ROWS} results, with those without a value; send it in "
                "parts",
                field="file",
            )
        _check_names(row, f"result {number}")
        yield row


def _check_names(row: Row, place: str) -> None:
    if len(row.parameters) > MOST_PARAMETERS:
        raise InvalidRequestError(
            f"{place}: expected at most {MOST_PARAMETERS} parameters, got {len(row.parameters)}",
            field=place,
        )
    names = (
        row.metric, row.unit, row.statistic, row.suite, row.environment, row.commit, row.branch,
        *row.parameters, *row.parameters.values(),
    )  # fmt: skip
    for name in names:
        if isinstance(name, str) and len(name) > LONGEST_NAME:
            raise InvalidRequestError(
                f"{place}: expected names of at most {LONGEST_NAME} characters, got {name[:40]}…",
                field=place,
            )
