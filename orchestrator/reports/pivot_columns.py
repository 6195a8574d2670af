"""The columns of a pivot, one per combination of their dimensions' values. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.benchmarks.choice import compile_condition
from orchestrator.benchmarks.fields import Scalar
from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.pivot_model import PUBLISHED_SUFFIX, Observation, TableColumn
from orchestrator.reports.report_spec import (
    Column,
    Measure,
    ReportSpec,
    TableSpec,
    get_column_title,
)
from orchestrator.reports.units import choose_unit

_WORD = re.compile(r"\{([a-z][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One column of the table.

    `where`: dimension → its value for this column, in addition to the column's specification.
    """

    spec: Column
    title: str
    where: Mapping[str, str]
    published: bool = False

    def build_column(self, table: TableSpec, columns: Sequence["Spread"]) -> TableColumn:
        measure = self.spec.measure
        if self.spec.difference:
            measure = find_operand(self, columns)
        return TableColumn(
            title=self.title,
            unit=self._unit(measure),
            kind=self._kind(),
            metric=measure.metric if measure else None,
            statistic=measure.statistic if measure else "",
            better=measure.info.better if measure else None,
            published=self.published,
        )

    def _kind(self) -> Literal["value", "change", "difference"]:
        if self.spec.difference:
            return "difference"
        return "change" if self.spec.relative else "value"

    def _unit(self, measure: Measure | None) -> str:
        if self.spec.relative:
            return "%"
        if measure is None:
            return ""
        return choose_unit(measure.info.unit) if measure.unit is None else measure.unit


class Orders:
    """The order of the values of each dimension; unknown values come last."""

    def __init__(self, known: Mapping[str, Sequence[str]]) -> None:
        self._places = {
            dimension: {value: place for place, value in enumerate(values)}
            for dimension, values in known.items()
        }

    def place(self, dimension: str, value: str) -> tuple[int, str]:
        places = self._places.get(dimension, {})
        return (places.get(value, len(places)), value)


def select_observations(
    observations: Iterable[Observation], expression: str, where: str
) -> list[Observation]:
    """Return the observations that match the expression; InvalidRequestError names `where`.

    Reference results that lack an axis of the expression are omitted.
    """
    holds = compile_condition(expression)
    seen = list(observations)
    empty: dict[str, Scalar] = {name: "" for each in seen for name in each.place}
    matches = []
    for each in seen:
        try:
            if holds({**empty, **each.place}):
                matches.append(each)
        except InvalidRequestError as error:
            if each.is_published:
                continue
            problem = str(error).removeprefix("cases: ")
            raise InvalidRequestError(f"{where}: {problem}", field=where) from error
    return matches


def spread_columns(
    report: ReportSpec, table: TableSpec, seen: Sequence[Observation], orders: Orders
) -> list[tuple[Spread, Callable[[Observation], bool]]]:
    """Return each column with a function that tests whether an observation belongs to it."""
    spreads: list[tuple[Spread, Callable[[Observation], bool]]] = []
    for place, column in enumerate(table.columns):
        mine = set(map(id, select_observations(seen, column.where, f"columns[{place}].where")))
        inside = [each for each in seen if id(each) in mine]
        for one in spread_column(report, column, inside, orders):
            spreads.append(
                (one, _build_membership_test(one, mine, apart=report.published == "columns"))
            )
    return spreads


def find_operand(column: Spread, columns: Sequence[Spread]) -> Measure | None:
    """Return the measure of the first column of a difference; None if the rows have it."""
    assert column.spec.difference is not None
    first = find_spread(columns, column.spec.difference[0])
    return first.spec.measure


def find_spread(columns: Sequence[Spread], title: str) -> Spread:
    for each in columns:
        if each.title == title and not each.spec.difference:
            return each
    known = ", ".join(repr(each.title) for each in columns) or "none"
    raise InvalidRequestError(
        f"difference: there is no column {title!r}; there are {known}", field="difference"
    )


def _build_membership_test(
    one: Spread, mine: set[int], *, apart: bool
) -> Callable[[Observation], bool]:
    def belongs(seen: Observation) -> bool:
        if id(seen) not in mine or (apart and seen.is_published != one.published):
            return False
        return all(seen.get_value(dimension) == value for dimension, value in one.where.items())

    return belongs


def spread_column(
    report: ReportSpec, column: Column, inside: Sequence[Observation], orders: Orders
) -> list[Spread]:
    """Return measured columns first, then reference results, with a column for each machine."""
    if column.difference:
        return [Spread(spec=column, title=get_column_title(column), where={})]
    apart = report.published == "columns"
    measured = [each for each in inside if not (apart and each.is_published)]
    spreads: list[Spread] = []
    if not column.published:
        spreads = _list_combinations(
            report, column, column.across, measured, orders, published=False
        )
    if apart and column.published is not False:
        published = [each for each in inside if each.is_published and _has_value(each, column)]
        dimensions = list(dict.fromkeys(["host", *column.across]))
        spreads += _list_combinations(report, column, dimensions, published, orders, published=True)
    return spreads


def _has_value(seen: Observation, column: Column) -> bool:
    return column.metric in seen.published if column.metric else bool(seen.published)


def _list_combinations(
    report: ReportSpec,
    column: Column,
    dimensions: Sequence[str],
    inside: Sequence[Observation],
    orders: Orders,
    *,
    published: bool,
) -> list[Spread]:
    if not dimensions:
        return [Spread(spec=column, title=get_column_title(column), where={})]
    tuples = {tuple(each.get_value(name) for name in dimensions) for each in inside}
    in_order = sorted(
        tuples,
        key=lambda values: [
            orders.place(name, value) for name, value in zip(dimensions, values, strict=True)
        ],
    )
    # A single machine is not named in each heading: a note names it.
    alone = published and len({each.get_value("host") for each in inside}) == 1
    return [
        _build_spread(
            report,
            column,
            dict(zip(dimensions, values, strict=True)),
            published=published,
            unsaid="host" if alone else None,
        )
        for values in in_order
    ]


def _build_spread(
    report: ReportSpec,
    column: Column,
    where: Mapping[str, str],
    *,
    published: bool,
    unsaid: str | None,
) -> Spread:
    names = {each: report.named(each, value, value) for each, value in where.items()}
    title = _WORD.sub(lambda match: names.get(match[1], match[0]), column.title or "")
    omitted = {unsaid, *_WORD.findall(column.title or "")}
    words = [name for each, name in names.items() if name and each not in omitted]
    text = " ".join([*words, title]).strip() if title else " · ".join(words)
    return Spread(
        spec=column,
        title=f"{text or get_column_title(column)}{PUBLISHED_SUFFIX if published else ''}",
        where=where,
        published=published,
    )
