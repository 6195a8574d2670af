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


def import_out(found: ResultImport) -> ImportOut:
    return ImportOut(
        id=found.pk,
        state=ImportStateName(found.state),
        name=found.name,
        project=found.project or None,
        checked=found.checked,
        total=found.total,
        done=found.done,
        accepted=found.accepted,
        repeated=found.repeated,
        errors=[Fault(field=where or None, detail=what) for where, what in found.faults],
        created_at=found.created_at,
        ended_at=found.ended_at,
        url=build_api_url(f"results/imports/{found.pk}"),
        web_url=f"{build_web_url('imports')}#import-{found.pk}",
    )
