"""Reference results: values that others published, never part of a statistic."""

from datetime import datetime
from typing import Any
from uuid import UUID

from ninja import Schema

from orchestrator.api.schemas.common import Text, build_api_url, build_web_url
from orchestrator.reports.models import ReferenceResult, ReferenceSource
from orchestrator.reports.reference_import import ReferenceImport


class PublishedIn(Schema, extra="forbid"):
    """`suite`: a suite of the catalogue that has reference results."""

    suite: Text


class ReferenceOut(Schema):
    """A source of reference results; `origin` says where it is from."""

    id: UUID
    name: str
    origin: str
    format: str
    imported_at: datetime
    url: str
    web_url: str


class ReferencePage(Schema):
    references: list[ReferenceOut]
    next: str | None


class ImportedOut(Schema):
    """The result of an import of a file; `unknown` rows have no known value."""

    reference: ReferenceOut
    rows: int
    unknown: int
    added: int
    changed: int
    unchanged: int


class FigureOut(Schema):
    """One reference result; a null `value` is unknown, and `sentinel` is the text in its place."""

    suite: str
    environment: str
    parameters: dict[str, Any]
    metric: str
    unit: str
    statistic: str
    value: float | None
    sentinel: str
    measured_at: datetime | None
    commit: str


class FigurePage(Schema):
    figures: list[FigureOut]
    next: str | None


def build_reference_out(source: ReferenceSource) -> ReferenceOut:
    return ReferenceOut(
        id=source.pk,
        name=source.name,
        origin=source.origin,
        format=source.format,
        imported_at=source.imported_at,
        url=build_api_url(f"references/{source.pk}"),
        web_url=build_web_url("reference", source.pk),
    )


def build_imported_out(done: ReferenceImport) -> ImportedOut:
    return ImportedOut(
        reference=build_reference_out(done.source),
        rows=done.rows,
        unknown=done.unknown,
        added=done.added,
        changed=done.changed,
        unchanged=done.unchanged,
    )


def build_figure_out(result: ReferenceResult) -> FigureOut:
    return FigureOut(
        suite=result.suite,
        environment=result.environment,
        parameters=result.parameters,
        metric=result.metric,
        unit=result.unit,
        statistic=result.statistic,
        value=result.value,
        sentinel=result.sentinel,
        measured_at=result.measured_at,
        commit=result.commit,
    )
