"""Benchmarks, their cases and their definitions, and the catalogue."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import CaseOut, Flag, Text
from orchestrator.benchmarks.catalogue import Suite
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.review import Fault, Review
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.benchmarks.versions import DiffLine, compare_cases, compute_diff
from orchestrator.core.storable_text import StorableText

Source = Annotated[StorableText, Field(max_length=262_144, description="YAML.")]


class BenchmarkCaseOut(CaseOut):
    """`hidden`: the choices of pages leave it out."""

    hidden: bool


class VisibilityIn(Schema, extra="forbid"):
    hidden: Flag


class BenchmarkOut(Schema):
    """`cases` are those that runs have requested; `definition_version` is the newest.

    `repository_path` is the file in the repository with the definition, if there is one. `draft`:
    it was tried and is not saved yet.
    """

    benchmark: str
    project: str
    title: str
    definition_version: int | None
    repository_path: str
    draft: bool
    cases: list[BenchmarkCaseOut]


class BenchmarkPage(Schema):
    benchmarks: list[BenchmarkOut]
    next: str | None


class DefinitionIn(Schema, extra="forbid"):
    source: Source


class DefinitionSummaryOut(Schema):
    """One version; `commit` and `path` are its source if it was read from a repository."""

    benchmark: str
    project: str
    version: int
    digest: str
    created_at: datetime
    created_by: str | None
    commit: str | None
    path: str


class DefinitionPage(Schema):
    definitions: list[DefinitionSummaryOut]
    next: str | None


class DefinitionOut(DefinitionSummaryOut):
    source: str


class LineOut(Schema):
    """`sign`: `+`, `-`, a space, or `@` for omitted unchanged lines."""

    sign: Literal["+", "-", " ", "@"]
    old: int | None
    new: int | None
    text: str


class DefinitionChangesOut(Schema):
    """The changes of a version against an earlier one: lines of the text, and labels of new and
    removed cases. `cases_kept` continue their history."""

    version: int
    since: int
    lines: list[LineOut]
    cases_added: list[str]
    cases_removed: list[str]
    cases_kept: int


class UnsupportedOut(Schema):
    case: str
    reason: str


class FaultOut(Schema):
    """`field`: the path in the definition; `line` (from 1): the position in its text."""

    field: str | None
    line: int | None
    expectation: str


class ReviewOut(Schema):
    """The cost of a definition, or its faults: `field` is the path in the definition, `line` (from
    1) the position in its text. `others`: the faults after the first.

    `round_s`: the duration of one round of all cases for one commit. `tools`: cases by load tool.
    """

    valid: bool
    field: str | None = None
    line: int | None = None
    expectation: str | None = None
    others: list[FaultOut] = []
    cases: int = 0
    unsupported: list[UnsupportedOut] = []
    round_s: float = 0
    tools: dict[str, int] = {}


class SuiteOut(Schema):
    """A suite of the catalogue; `readme` is Markdown."""

    suite: str
    title: str
    description: str
    readme: str
    source: str
    review: ReviewOut


class SuitePage(Schema):
    suites: list[SuiteOut]
    next: str | None


class DefinitionFilesOut(Schema):
    """The files of a commit that contain definitions."""

    commit: str
    paths: list[str]


class ImportIn(Schema, extra="forbid"):
    """`path` is `.pitwall.yaml` or `.pitwall/NAME.yaml`, read at `ref` (default: main branch).

    `benchmark` is its name; default: NAME, or the name of the project.
    """

    path: Text
    benchmark: Text | None = None
    ref: Text | None = None


def build_benchmark_out(benchmark: Benchmark, version: int | None) -> BenchmarkOut:
    return BenchmarkOut(
        benchmark=benchmark.slug,
        project=benchmark.project.slug,
        title=benchmark.title,
        definition_version=version,
        repository_path=benchmark.repository_path,
        draft=benchmark.is_draft,
        cases=[build_benchmark_case_out(case) for case in benchmark.cases.all()],
    )


def build_benchmark_case_out(case: Case) -> BenchmarkCaseOut:
    return BenchmarkCaseOut(
        key=case.key,
        label=case.label,
        parameters=case.parameters,
        hidden=case.hidden_at is not None,
    )


def build_definition_summary_out(definition: Definition) -> DefinitionSummaryOut:
    return DefinitionSummaryOut(
        benchmark=definition.benchmark.slug,
        project=definition.benchmark.project.slug,
        version=definition.version,
        digest=definition.digest,
        created_at=definition.created_at,
        created_by=definition.created_by.get_username() if definition.created_by else None,
        commit=definition.commit.sha if definition.commit else None,
        path=definition.path,
    )


def build_definition_out(definition: Definition) -> DefinitionOut:
    summary = build_definition_summary_out(definition).model_dump()
    return DefinitionOut(**summary, source=definition.source)


def build_definition_changes_out(before: Definition, after: Definition) -> DefinitionChangesOut:
    cases = compare_cases(read_spec(before), read_spec(after))
    return DefinitionChangesOut(
        version=after.version,
        since=before.version,
        lines=[_build_line_out(each) for each in compute_diff(before.source, after.source)],
        cases_added=list(cases.added),
        cases_removed=list(cases.removed),
        cases_kept=cases.kept,
    )


def _build_line_out(line: DiffLine) -> LineOut:
    return LineOut(sign=line.sign, old=line.old, new=line.new, text=line.text)  # type: ignore[arg-type]


def build_review_out(result: Review | Fault) -> ReviewOut:
    if isinstance(result, Fault):
        return ReviewOut(
            valid=False,
            field=result.path or None,
            line=result.line,
            expectation=result.expectation,
            others=[
                FaultOut(field=each.path or None, line=each.line, expectation=each.expectation)
                for each in result.others
            ],
        )
    return ReviewOut(
        valid=True,
        cases=len(result.cases),
        unsupported=[
            UnsupportedOut(case=case.label, reason=reason) for case, reason in result.unsupported
        ],
        round_s=result.round_s,
        tools=dict(result.tools),
    )


def build_suite_out(suite: Suite) -> SuiteOut:
    return SuiteOut(
        suite=suite.slug,
        title=suite.title,
        description=suite.review.spec.description if suite.review else "",
        readme=suite.readme,
        source=suite.source,
        review=build_review_out(suite.outcome),
    )


def build_files_out(commit: Commit, paths: list[str]) -> DefinitionFilesOut:
    return DefinitionFilesOut(commit=commit.sha, paths=paths)
