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
    """The state of an import; `done` and `failed` are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


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
    created_at: datetime
    ended_at: datetime | None
    url: Annotated[str, Field(description="The address of this import in the API.")]
    web_url: str


class ImportPage(Schema):
    imports: list[ImportOut]
    next: str | None


def import_out(result_import: ResultImport) -> ImportOut:
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
        created_at=result_import.created_at,
        ended_at=result_import.ended_at,
        url=build_api_url(f"results/imports/{result_import.pk}"),
        web_url=f"{build_web_url('imports')}#import-{result_import.pk}",
    )
