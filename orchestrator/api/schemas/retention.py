"""The retention of a project, its pins, and the removed data."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field, model_validator

from orchestrator.api.schemas.common import CommitOut, Text, Whole, build_commit_out
from orchestrator.results.models import Pin, Removal, RemovalKind, Retention

Days = Annotated[Whole | None, Field(ge=1, description="Null: forever.")]


class RetentionIn(BaseModel):
    """Days after the end of a run. Larger data are removed first: no value may be smaller than the
    one above it. `keep_every` requires `points_days`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    files_days: Days
    distributions_days: Days
    trials_days: Days = None
    points_days: Days = None
    keep_every: Annotated[
        Whole | None, Field(ge=2, description="Then only the points of every n-th commit remain.")
    ] = None


class RetentionOut(Schema):
    files_days: int | None
    distributions_days: int | None
    trials_days: int | None
    points_days: int | None
    keep_every: int | None


class PinIn(BaseModel):
    """A commit (hash, branch or tag) or a run to pin."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: Text | None = None
    run: UUID | None = None
    reason: Text

    @model_validator(mode="after")
    def _names_one(self) -> "PinIn":
        if (self.commit is None) == (self.run is None):
            raise ValueError("name a commit or a run")
        return self


class PinOut(Schema):
    id: int
    commit: CommitOut | None
    run: UUID | None
    reason: str
    pinned_by: str | None
    pinned_at: datetime


class PinPage(Schema):
    pins: list[PinOut]
    next: str | None


class RemovalOut(Schema):
    """`ended_at` is null while data remain to be removed; `bytes` is their stored size."""

    kind: RemovalKind
    run: UUID | None
    after_days: int
    rows: int
    bytes: int
    began_at: datetime
    ended_at: datetime | None


class RemovalPage(Schema):
    removals: list[RemovalOut]
    next: str | None


def build_retention_out(retention: Retention) -> RetentionOut:
    return RetentionOut(
        files_days=retention.files_days,
        distributions_days=retention.distributions_days,
        trials_days=retention.trials_days,
        points_days=retention.points_days,
        keep_every=retention.keep_every,
    )


def build_pin_out(pin: Pin) -> PinOut:
    return PinOut(
        id=pin.pk,
        commit=build_commit_out(pin.commit) if pin.commit else None,
        run=pin.run_id,
        reason=pin.reason,
        pinned_by=pin.pinned_by.get_username() if pin.pinned_by else None,
        pinned_at=pin.pinned_at,
    )


def build_removal_out(removal: Removal) -> RemovalOut:
    return RemovalOut(
        kind=RemovalKind(removal.kind),
        run=removal.run_id,
        after_days=removal.after_days,
        rows=removal.rows,
        bytes=removal.bytes,
        began_at=removal.began_at,
        ended_at=removal.ended_at,
    )
