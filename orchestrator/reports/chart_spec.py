"""The charts of a table, as a report specifies them. Strict; no Django."""

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from orchestrator.benchmarks.fields import Name, Strict

#: More lines or curves cannot be distinguished.
MAX_CURVES = 8

ChartKind = Literal["bars", "lines", "curves", "heatmap", "ranks"]
_ColumnPattern = Annotated[str, Field(min_length=1, max_length=200)]


class ChartSpec(Strict):
    """One chart of a table.

    `bars`: a bar for each row. `lines`: along the numbers of the row dimension `x`, with one panel
    for each value of the row dimension `panels`. `curves`: latency percentiles, for tables whose
    rows are metrics. `heatmap`: rows by columns. `ranks`: the ranks that a row may have, for tables
    with `sort`. `columns` are titles; a `*` matches any text. By default they are the column of the
    ranking, or the first, and those of the same metric. `scale` is that of the values.
    """

    kind: ChartKind
    title: Annotated[str, Field(max_length=200)] = ""
    columns: Annotated[list[_ColumnPattern], Field(max_length=40)] = []
    x: Name | None = None
    panels: Name | None = None
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _makes_sense(self) -> "ChartSpec":
        if (self.kind == "lines") != (self.x is not None):
            raise ValueError("x: name a dimension of the rows if, and only if, the kind is lines")
        if self.panels is not None and self.kind != "lines":
            raise ValueError("panels: only a chart of lines has panels")
        if self.panels is not None and self.panels == self.x:
            raise ValueError("panels: name another dimension than x")
        if self.scale == "log" and self.kind in ("bars", "ranks"):
            raise ValueError(f"scale: {self.kind} have a linear scale")
        if any(pattern.count("*") > 2 for pattern in self.columns):
            raise ValueError("columns: a title has at most two *")
        return self

    def find_problem(
        self, rows: list[str], titles: tuple[str, ...] | None, *, by_metric: bool, sorts: bool
    ) -> str:
        """Return why a table with these row dimensions cannot have the chart; empty if it can.

        `titles` of its columns; None if they depend on the results.
        """
        if self.kind == "curves" and not by_metric:
            return "kind: curves need metric as a dimension of rows"
        if self.kind != "curves" and by_metric:
            return f"kind: {self.kind} cannot compare rows of different metrics; use curves"
        if self.kind == "ranks" and not sorts:
            return "kind: ranks need sort"
        for name, dimension in (("x", self.x), ("panels", self.panels)):
            if dimension is not None and dimension not in rows:
                return f"{name}: {dimension} is no dimension of rows; there are {', '.join(rows)}"
        for number, pattern in enumerate(self.columns):
            if titles is not None and not any(matches(pattern, title) for title in titles):
                return f"columns[{number}]: there is no column {pattern!r}"
        return ""


def matches(pattern: str, title: str) -> bool:
    """Return whether a title matches a pattern; its `*` match any text."""
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(expression, title, re.DOTALL) is not None
