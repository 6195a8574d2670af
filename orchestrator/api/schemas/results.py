"""Schemas for the import of results."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.api.schemas.common import Fault, build_api_url, build_web_url
from orchestrator.measurements.incoming import MOST_RESULTS, ResultIn
from orchestrator.results.models import ResultImport


class ResultsIn(BaseModel):
    """Finished results; either all or none are stored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    results: Annotated[list[ResultIn], Field(min_length=1, max_length=MOST_RESULTS)]


class TakenOut(Schema):
    """`repeated` results existed before and changed nothing."""

    accepted: int
    repeated: int


class ImportStateName(StrEnum):
    """The state of an import; `done` and `failed` are final. `ready`: the preview of a history is
    written, and the import waits to be started."""

    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    DONE = "done"
    FAILED = "failed"


class BenchmarkPreviewOut(Schema):
    slug: str
    exists: Annotated[bool, Field(description="False: the import creates it.")]
    series: int
    values: int


class UnknownCommitOut(Schema):
    name: Annotated[str, Field(description="As in the file; a date if it names no commit.")]
    subject: str
    at: datetime | None


class HistoryPreviewOut(Schema):
    """What the import of a history would store."""

    format: str
    values: int
    series: int
    unknown: Annotated[int, Field(description="Results without a value; they are skipped.")]
    spread: Annotated[int, Field(description="Values about the spread of others; skipped.")]
    undirected: Annotated[
        int,
        Field(description="Series whose better direction is unknown: no changes are searched."),
    ]
    benchmarks: list[BenchmarkPreviewOut]
    hosts: Annotated[list[str], Field(description="The first ten.")]
    commits: int
    matched: Annotated[int, Field(description="Commits that the project has.")]
    by_date: Annotated[int, Field(description="Of those, matched by the date of the results.")]
    unknown_values: Annotated[int, Field(description="Values of commits that it does not have.")]
    unknown_commits: Annotated[list[UnknownCommitOut], Field(description="The first ten.")]
    first_at: datetime | None
    last_at: datetime | None
    has_repository: bool
    fetch_problem: Annotated[
        str, Field(description="Why an older state of the repository was used; or empty.")
    ]


class UnknownCommitsChoice(StrEnum):
    """`keep`: store unknown commits with their dates. `skip`: leave out their results."""

    KEEP = "keep"
    SKIP = "skip"


class HistoryStartIn(Schema):
    model_config = ConfigDict(extra="forbid")

    unknown_commits: UnknownCommitsChoice


class ImportOut(Schema):
    """A large file that a worker imports; counts are of results.

    First the whole file is checked (`checked`), then it is stored in batches (`done` of `total`).
    `repeated` of those done existed before.
    """

    id: UUID
    state: ImportStateName
    name: str
    project: Annotated[str | None, Field(description="Default for results without a project.")]
    checked: int
    total: Annotated[int | None, Field(description="Null until the file has been checked.")]
    done: int
    accepted: int
    repeated: int
    errors: Annotated[
        list[Fault],
        Field(description="The error. Stored results remain: correct the file and send it again."),
    ]
    history: Annotated[bool, Field(description="Whether it is the history of another tool.")]
    preview: Annotated[
        HistoryPreviewOut | None, Field(description="Of a history; null until it is written.")
    ]
    created_at: datetime
    ended_at: datetime | None
    url: Annotated[str, Field(description="The address of this import in the API.")]
    web_url: str


class ImportPage(Schema):
    imports: list[ImportOut]
    next: str | None


def build_import_out(result_import: ResultImport) -> ImportOut:
    return ImportOut(
        id=result_import.pk,
        state=ImportStateName(result_import.state),
        name=result_import.name,
        project=result_import.project or None,
        checked=result_import.checked,
        total=result_import.total,
        done=result_import.done,
        accepted=result_import.accepted,
        repeated=result_import.repeated,
        errors=[Fault(field=where or None, detail=what) for where, what in result_import.faults],
        history=result_import.history is not None,
        preview=_build_preview(result_import),
        created_at=result_import.created_at,
        ended_at=result_import.ended_at,
        url=build_api_url(f"results/imports/{result_import.pk}"),
        web_url=build_web_url("import", result_import.pk),
    )


def _build_preview(result_import: ResultImport) -> HistoryPreviewOut | None:
    if not result_import.has_preview:
        return None
    return HistoryPreviewOut.model_validate(result_import.preview)
