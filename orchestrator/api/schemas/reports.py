"""Reports: their specification and the resulting tables."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import Flag, Text, build_web_url
from orchestrator.core.storable_text import StorableText
from orchestrator.reports.exports import report_data
from orchestrator.reports.models import SavedReport
from orchestrator.reports.report_builder import Report
from orchestrator.reports.report_spec import ReportSpec, from_data
from orchestrator.reports.visibility import read_visibility


class ReportSummaryOut(Schema):
    """A saved report of the team."""

    name: str
    title: str
    benchmark: str
    changed_at: datetime
    web_url: str


class ReportPage(Schema):
    reports: list[ReportSummaryOut]
    next: str | None


class ReportVisibilityOut(Schema):
    """Whether visitors see the hardware of a report, and reference results."""

    hardware: bool
    published: bool


class ReportVisibilityIn(Schema, extra="forbid"):
    hardware: Flag
    published: Flag


class SavedReportOut(ReportSummaryOut):
    """`source` is its text. `visibility`: what visitors see beyond the values."""

    source: str
    visibility: ReportVisibilityOut


class ReportIn(Schema, extra="forbid"):
    """`source`: the report as YAML (docs/reports.md). `name` overrides the name in it."""

    name: Text | None = None
    source: Annotated[StorableText, Field(min_length=1, max_length=65536)]


class ReportSourceIn(Schema, extra="forbid"):
    source: Annotated[StorableText, Field(min_length=1, max_length=65536)]


class ReportHeadOut(Schema):
    dimension: str
    title: str


class ReportColumnOut(Schema):
    """`unit` is empty if the cells have different units. `better`: higher or lower."""

    title: str
    kind: Literal["value", "change", "difference"]
    metric: str | None
    statistic: str
    unit: str
    better: str | None
    published: bool


class ReportCellOut(Schema):
    """`value` with its 95 % interval, in `unit`; if it is null, `reason` states why. `trials` of
    `runs` are used, `suspect` of them are suspect; `excluded` are invalid. Fewer than 3 runs have
    no interval, unless a change is `paired` by common blocks."""

    kind: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    trials: int
    runs: int
    suspect: int
    excluded: int
    reason: str
    baseline: bool
    published: bool
    paired: bool


class ReportRowOut(Schema):
    """`ranks`: the best and the worst rank that the row may have. `groups`, of a contest: rows
    without a common letter differ. Both at 95 % for all rows together."""

    heads: list[str]
    baseline: bool
    ranks: tuple[int, int] | None
    groups: str
    cells: list[ReportCellOut]


class ReportTableOut(Schema):
    """`sorted_by` is the index of a column."""

    title: str
    heads: list[ReportHeadOut]
    columns: list[ReportColumnOut]
    sorted_by: int | None
    rows: list[ReportRowOut]
    notes: list[str]


class ReportFactOut(Schema):
    title: str
    text: str


class ReportHostOut(Schema):
    name: str
    facts: list[ReportFactOut]


class ReportProvenanceOut(Schema):
    """The provenance of the values, and why some are missing."""

    facts: list[ReportFactOut]
    hosts: list[ReportHostOut]
    missing: list[str]


class ReportClaimOut(Schema):
    """A claim of the original report, judged on one host.

    `value` has the interval from `low` to `high`, in `unit` (`times` for a ratio). Of several
    `comparisons`, it is the one that decides. `paired`: a ratio of values in common blocks of a
    contest. `reason`: why it cannot be decided.
    """

    claim: str
    source: str
    published: str
    metric: str
    relation: str
    host: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    paired: bool
    suspect: int
    comparisons: int
    conclusion: Literal["holds", "does not hold", "cannot tell"]
    reason: str


class ReportDifferenceOut(Schema):
    """What differs between the original report and the measurements here."""

    topic: str
    original: str
    here: str


class ReportClaimsOut(Schema):
    """`confidence` is that of each interval: all `comparisons` together are right at 95 %."""

    confidence: float
    comparisons: int
    claims: list[ReportClaimOut]
    differences: list[ReportDifferenceOut]


class ReportMachineOut(Schema):
    """A machine of the report; `published`: others measured on it."""

    name: str
    published: bool
    facts: list[ReportFactOut]


class ReportOut(Schema):
    """The tables of a report; the same as on its page and in its files. `prose` is Markdown."""

    title: str
    benchmark: str
    commits: list[str]
    hosts: list[str]
    definition_versions: list[int]
    notes: list[str]
    prose: str
    hardware: list[ReportMachineOut]
    tables: list[ReportTableOut]
    claims: ReportClaimsOut
    provenance: ReportProvenanceOut


class ReportQuery(Schema):
    """Parameters that override those of the report."""

    commit: Text | None = None
    host: list[Text] = []
    cases: Annotated[StorableText, Field(max_length=2000)] | None = None
    published: Literal["none", "columns", "rows"] | None = None
    run: Annotated[UUID | None, Field(description="Only results of this run.")] = None

    def changed(self, spec: ReportSpec) -> ReportSpec:
        data: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
        overrides = self.model_dump(exclude_none=True, exclude={"run"})
        if hosts := overrides.pop("host"):
            data["hosts"] = hosts
        return from_data({**data, **overrides, "version": 1})


def build_summary_out(report: SavedReport) -> ReportSummaryOut:
    return ReportSummaryOut(**_build_summary_fields(report))


def build_saved_out(report: SavedReport) -> SavedReportOut:
    shown = read_visibility(report)
    return SavedReportOut(
        **_build_summary_fields(report),
        source=report.source,
        visibility=ReportVisibilityOut(hardware=shown.hardware, published=shown.published),
    )


def build_report_out(report: Report) -> ReportOut:
    return ReportOut.model_validate(report_data(report))


def _build_summary_fields(report: SavedReport) -> dict[str, Any]:
    return {
        "name": report.slug,
        "title": report.title,
        "benchmark": f"{report.benchmark.project.slug}/{report.benchmark.slug}",
        "changed_at": report.changed_at,
        "web_url": build_web_url("report", report.slug),
    }
