"""The specification of a report: its cases, rows and columns. Strict; no Django.

A report is YAML. `parse` turns it into a ReportSpec, `parse_all` a file of several. Both raise
InvalidRequestError with the path in the text and the expected value.
"""

import re
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from orchestrator.benchmarks.faults import describe_yaml_error, find_first_fault
from orchestrator.benchmarks.fields import Name, Strict, refuse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.yaml_text import parse_yaml
from orchestrator.loadtools.metrics import Metric
from orchestrator.reports.chart_spec import ChartSpec
from orchestrator.reports.claim_spec import MAX_CLAIMS, Claim, Original
from orchestrator.reports.spec_fields import (
    Expression,
    Text,
    check_condition,
    find_known_metric,
    find_metric_problem,
)

MAX_SOURCE_BYTES = 64 * 1024
#: Characters of the Markdown of a report.
MAX_PROSE = 20_000
#: Dimensions other than the axes and labels of the definition.
OWN_DIMENSIONS = ("host", "profile", "commit", "metric", "source")

Statistic = Literal["median", "mean", "min", "max", "merged"]
#: As in histories.
DEFAULT_STATISTIC: Statistic = "mean"
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]


def _expand_dimension(data: object) -> object:
    return {"dimension": data} if isinstance(data, str) else data


class Dimension(Strict):
    """An axis or a label of the definition, or one of OWN_DIMENSIONS."""

    dimension: Name
    title: Text | None = None

    @property
    def heading(self) -> str:
        return self.title or self.dimension.replace("_", " ").capitalize()


class Measure(Strict):
    """A metric for display: its statistic over a case's trials, its unit, its digits."""

    title: Text | None = None
    metric: Annotated[str, Field(max_length=60)]
    statistic: Statistic = DEFAULT_STATISTIC
    unit: Annotated[str, Field(max_length=20)] | None = None
    decimals: Annotated[int, Field(ge=0, le=9)] | None = None

    @property
    def info(self) -> Metric:
        metric = find_known_metric(self.metric)
        assert metric is not None, self.metric
        return metric

    @property
    def heading(self) -> str:
        return self.title or self.info.title

    @model_validator(mode="after")
    def _can_be_shown(self) -> "Measure":
        if problem := find_metric_problem(self.metric, self.statistic, self.unit):
            raise ValueError(problem)
        return self


class Column(Strict):
    """One column, or with `across` one for each combination of the values of these dimensions.

    Without a metric, its rows have one. `where` limits the cases. `relative`: the change against
    the baseline case of the definition; with `against` a host, against the same case there; with
    `baseline` a value of the contest axis, against the case with this value.
    `difference`: of two other columns, by their titles. `shared`: a value that cases have in
    common, such as the size of an answer over all protocols, so that they need not be separated.
    `published`: true shows only reference results, false only measurements; by default both. In a
    title, `{protocol}` is replaced by the value of a dimension of `across`.
    """

    title: Text | None = None
    metric: Annotated[str, Field(max_length=60)] | None = None
    statistic: Statistic = DEFAULT_STATISTIC
    unit: Annotated[str, Field(max_length=20)] | None = None
    decimals: Annotated[int, Field(ge=0, le=9)] | None = None
    where: Expression = ""
    across: Annotated[list[Name], Field(max_length=4)] = []
    relative: bool = False
    against: Text | None = None
    baseline: Text | None = None
    shared: bool = False
    published: bool | None = None
    difference: tuple[Text, Text] | None = None

    @property
    def measure(self) -> Measure | None:
        """Return the measure; None if the rows, or other columns, determine it."""
        if self.metric is None:
            return None
        return Measure(
            title=self.title,
            metric=self.metric,
            statistic=self.statistic,
            unit=self.unit,
            decimals=self.decimals,
        )

    @model_validator(mode="after")
    def _makes_sense(self) -> "Column":
        if self.metric and (problem := find_metric_problem(self.metric, self.statistic, self.unit)):
            raise ValueError(problem)
        if self.difference and (self.metric or self.across or self.where or self.relative):
            raise ValueError("difference: such a column has no metric, across, where or relative")
        if self.difference and not self.title:
            raise ValueError("title: a difference needs one")
        if self.against and not self.relative:
            raise ValueError("against: only a change is against a host; add relative: true")
        if self.baseline and (self.against or not self.relative):
            raise ValueError("baseline: only a change has one; add relative: true, without against")
        if self.shared and (self.relative or self.difference):
            raise ValueError("shared: changes and differences are of single cases")
        if "metric" in self.across:
            raise ValueError("across: metric can only be a dimension of rows")
        check_condition(self.where, "where")
        return self


class Sort(Strict):
    """The column to sort by, by its title. `best`: by the metric's better direction."""

    column: Text
    order: Literal["best", "ascending", "descending"] = "best"


class TableSpec(Strict):
    """One table. `metrics` are the values of the dimension `metric`, if the rows have it.

    Without `sort` the rows are in the order of the axes. Without `charts` the table has the chart
    that fits it, if there is one.
    """

    title: Text = ""
    description: Annotated[str, Field(max_length=5000)] = ""
    cases: Expression = ""
    rows: Annotated[
        list[Annotated[Dimension, BeforeValidator(_expand_dimension)]],
        Field(min_length=1, max_length=8),
    ]
    columns: Annotated[list[Column], Field(min_length=1, max_length=40)]
    metrics: Annotated[list[Measure], Field(max_length=40)] = []
    sort: (
        Annotated[
            Sort, BeforeValidator(lambda data: {"column": data} if isinstance(data, str) else data)
        ]
        | None
    ) = None
    charts: Annotated[list[ChartSpec], Field(max_length=8)] | None = None

    @property
    def by_metric(self) -> bool:
        return any(each.dimension == "metric" for each in self.rows)

    @model_validator(mode="after")
    def _fits_together(self) -> "TableSpec":
        check_condition(self.cases, "cases")
        for place, column in enumerate(self.columns):
            if problem := self._find_problem(column):
                raise ValueError(f"columns[{place}].{problem}")
        if self.by_metric != bool(self.metrics):
            raise ValueError("metrics: name some if, and only if, metric is a dimension of rows")
        if self.by_metric and self.sort:
            raise ValueError("sort: rows of different metrics cannot be ranked")
        dimensions = [each.dimension for each in self.rows]
        if twice := {name for name in dimensions if dimensions.count(name) > 1}:
            raise ValueError(f"rows: {min(twice)} occurs twice")
        if self.sort and self.fixed and self.sort.column not in self.titles:
            raise ValueError(f"sort.column: there is no column {self.sort.column!r}")
        for place, chart in enumerate(self.charts or ()):
            if problem := chart.find_problem(
                dimensions,
                self.titles if self.fixed else None,
                by_metric=self.by_metric,
                sorts=self.sort is not None,
            ):
                raise ValueError(f"charts[{place}].{problem}")
        return self

    @property
    def fixed(self) -> bool:
        """Return whether the columns are known before any measurement."""
        return not any(column.across for column in self.columns)

    @property
    def titles(self) -> tuple[str, ...]:
        """Return the titles of the columns without `across`."""
        return tuple(get_column_title(each) for each in self.columns if not each.across)

    def _find_problem(self, column: Column) -> str:
        if column.difference is None:
            if bool(column.metric) == self.by_metric:
                return (
                    "metric: the rows already have the metrics"
                    if column.metric
                    else "metric: this field is missing"
                )
            return ""
        for title in column.difference:
            if self.fixed and title not in self.titles:
                return f"difference: there is no column {title!r}"
        return ""


class ReportSpec(Strict):
    """A report of one benchmark.

    `commit`: newest (of those measured), all, or a commit, branch or tag. Without `hosts` and
    `profiles` all count. `names`: dimension → value → its display name. `published`: whether and
    where imported reference results are shown. `suspect_trials`: whether they count in a cell with
    enough valid ones (FEWEST_VALID). `prose`: Markdown above the tables.
    """

    version: Literal[1]
    name: Slug | None = None
    title: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=5000)] = ""
    prose: Annotated[str, Field(max_length=MAX_PROSE)] = ""
    benchmark: Annotated[str, Field(max_length=130)] = ""
    commit: Annotated[str, Field(min_length=1, max_length=200)] = "newest"
    hosts: Annotated[list[Text], Field(max_length=100)] = []
    profiles: Annotated[list[Text], Field(max_length=100)] = []
    cases: Expression = ""
    names: dict[Name, dict[Text, Text]] = {}
    published: Literal["none", "columns", "rows"] = "none"
    suspect_trials: Literal["include", "exclude"] = "include"
    tables: Annotated[list[TableSpec], Field(min_length=1, max_length=20)]
    claims: Annotated[list[Claim], Field(max_length=MAX_CLAIMS)] = []
    original: Original = Original()

    @model_validator(mode="after")
    def _cases_can_be_read(self) -> "ReportSpec":
        check_condition(self.cases, "cases")
        return self

    def named(self, dimension: str, value: object, shown: str) -> str:
        return self.names.get(dimension, {}).get(shown, shown)


def get_column_title(column: Column) -> str:
    """Return the title; by default that of the metric."""
    return column.title or (column.measure.heading if column.measure else "Value")


def parse(source: str) -> ReportSpec:
    """Parse a YAML text with one report."""
    return from_data(_parse_mapping(source))


def parse_all(source: str) -> tuple[ReportSpec, ...]:
    """Parse the reports of a file: one, or the list below `reports`, where each has a name."""
    data = _parse_mapping(source)
    several = data.get("reports")
    if several is None:
        return (from_data(data),)
    if not isinstance(several, list) or not several:
        raise refuse("reports", "expected a list of reports")
    specs = []
    for place, each in enumerate(several):
        if not isinstance(each, dict):
            raise refuse(f"reports[{place}]", "expected a mapping with version, title and tables")
        try:
            specs.append(from_data(each))
        except InvalidRequestError as error:
            where = f"reports[{place}]"
            raise InvalidRequestError(f"{where}.{error}", field=f"{where}.{error.field}") from error
    return tuple(specs)


def from_data(data: dict[str, Any]) -> ReportSpec:
    try:
        return ReportSpec.model_validate(data)
    except ValidationError as error:
        path, problem = find_first_fault(error, data, ReportSpec)
        inner, colon, rest = problem.partition(": ")
        if colon and path and re.fullmatch(r"[a-z_]+(\[\d+\])?(\.[a-z_]+)*", inner):
            path, problem = f"{path}.{inner}", rest
        raise refuse(path, problem) from error


def to_yaml(spec: ReportSpec) -> str:
    """Format a report so that `parse` returns an equal one."""
    data = spec.model_dump(mode="json", exclude_defaults=True)
    data = {"version": 1, **data}
    for table in data["tables"]:
        table["rows"] = [row if len(row) > 1 else row["dimension"] for row in table["rows"]]
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, which people can edit."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _parse_mapping(source: str) -> dict[str, Any]:
    if len(source.encode()) > MAX_SOURCE_BYTES:
        raise InvalidRequestError(f"a report has at most {MAX_SOURCE_BYTES // 1024} KiB")
    try:
        data = parse_yaml(source)
    except yaml.YAMLError as error:
        raise InvalidRequestError(f"not valid YAML: {describe_yaml_error(error)}") from error
    except (RecursionError, ValueError) as error:
        raise InvalidRequestError(f"not a usable YAML document: {error}") from error
    if not isinstance(data, dict):
        raise InvalidRequestError("expected a mapping with version, title and tables")
    return data
