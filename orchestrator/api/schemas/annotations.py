"""Annotations at commits of histories."""

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from ninja import Schema
from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from orchestrator.api.schemas.common import (
    CaseOut,
    CommitOut,
    Text,
    build_case_out,
    build_commit_out,
)
from orchestrator.core.storable_text import StorableText
from orchestrator.histories.annotations import MAX_TEXT, Scope, describe_scope
from orchestrator.results.models import Annotation

NoteText = Annotated[StorableText, StringConstraints(min_length=1, max_length=MAX_TEXT)]


class AnnotationIn(BaseModel):
    """An annotation at `commit` of a `project`, a `benchmark`, a `case` or a series. A series is a
    case with `host` and `metric`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    project: Text | None = None
    benchmark: Text | None = None
    case: Text | None = None
    host: Text | None = None
    metric: Text | None = None
    commit: Text
    text: NoteText

    @model_validator(mode="after")
    def _names_one_thing(self) -> Self:
        if self.project is None and self.benchmark is None:
            raise ValueError("name a benchmark or a project")
        if self.case is not None and self.benchmark is None:
            raise ValueError("name the benchmark of the case")
        if (self.host is None) != (self.metric is None) or (self.host and self.case is None):
            raise ValueError("name the case, the host and the metric of the series")
        return self


class AnnotationTextIn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    text: NoteText


class AnnotationOut(Schema):
    """`scope`: project, benchmark, case or series; fields of narrower scopes are null."""

    id: UUID
    scope: Scope
    project: str
    benchmark: str | None
    case: CaseOut | None
    host: str | None
    metric: str | None
    commit: CommitOut
    text: str
    created_by: str | None
    created_at: datetime
    edited_by: str | None
    edited_at: datetime | None


class AnnotationPage(Schema):
    annotations: list[AnnotationOut]
    next: str | None


def build_annotation_out(note: Annotation) -> AnnotationOut:
    """Convert a row of `histories.annotations.annotations_for`."""
    series = note.series
    case = series.case if series else note.case
    benchmark = case.benchmark if case else note.benchmark
    return AnnotationOut(
        id=note.pk,
        scope=describe_scope(note),
        project=note.project.slug,
        benchmark=benchmark.slug if benchmark else None,
        case=build_case_out(case) if case else None,
        host=series.host.name if series else None,
        metric=series.metric.key if series else None,
        commit=build_commit_out(note.commit),
        text=note.text,
        created_by=note.created_by.get_username() if note.created_by else None,
        created_at=note.created_at,
        edited_by=note.edited_by.get_username() if note.edited_by else None,
        edited_at=note.edited_at,
    )
