"""Imports and reads of reference results."""

from enum import StrEnum
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from ninja import File, Query, Router
from ninja.files import UploadedFile
from ninja.responses import Status
from pydantic import AwareDatetime

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, NumberCursor, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.references import (
    FigurePage,
    ImportedOut,
    PublishedIn,
    ReferenceOut,
    ReferencePage,
    build_figure_out,
    build_imported_out,
    build_reference_out,
)
from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.registry import FORMATS
from orchestrator.reports.reference_import import NewImport, import_results, remove_source
from orchestrator.reports.reference_suites import import_published
from orchestrator.reports.references import load_reference_results, load_source, load_sources

router = Router(tags=["references"])

REFERENCE = "/references/{uuid:reference_id}"
#: The same limit as on the web page; use the command line for larger files.
MOST_BYTES = 32 * 1024**2
Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]


@router.get(
    "/references", response=ReferencePage, summary="List sources of reference results, newest first"
)
def list_references(
    request: CallerRequest, cursor: Cursor = None, limit: Limit = 50
) -> ReferencePage:
    page, following = cut_page(load_sources(request.auth.member), after=cursor, limit=limit)
    return ReferencePage(references=[build_reference_out(each) for each in page], next=following)


@router.post("/references", response=ImportedOut, summary="Import a file of reference results")
def import_references(
    request: CallerRequest,
    file: File[UploadedFile],
    format: Annotated[Format, Query(description="docs/importing.md describes them.")],
    source: Annotated[
        Text | None,
        Query(
            description="The name in Pitwall; default: the file name. An existing source is "
            "updated."
        ),
    ] = None,
    origin: Text | None = None,
    suite: Text | None = None,
    profile: Annotated[Text | None, Query(description="The machine.")] = None,
    commit: Text | None = None,
    measured_at: AwareDatetime | None = None,
) -> ImportedOut:
    """At most 32 MiB. Either all results are stored or none. The parameters fill in what the file
    does not contain. Sending the same file again changes nothing."""
    if (file.size or 0) > MOST_BYTES:
        raise InvalidRequestError(f"a file has at most {MOST_BYTES // 1024**2} MiB", field="file")
    new = NewImport(
        name=source or (file.name or "")[:100],
        format=format.value,
        content=file.read(),
        origin=origin or "",
        suite=suite or "",
        environment=profile or "",
        commit=commit or "",
        measured_at=measured_at,
    )
    return build_imported_out(import_results(member=request.auth.member, new=new))


@router.post(
    "/references/published", response=ImportedOut, summary="Import the reference results of a suite"
)
def import_suite(request: CallerRequest, payload: PublishedIn) -> ImportedOut:
    """Imports the results that the catalogue has for the suite, with their hardware profiles."""
    return build_imported_out(import_published(member=request.auth.member, suite=payload.suite))


@router.get(REFERENCE, response=ReferenceOut, summary="Show a source of reference results")
def show_reference(request: CallerRequest, reference_id: UUID) -> ReferenceOut:
    return build_reference_out(load_source(request.auth.member, reference_id))


@router.get(
    REFERENCE + "/figures", response=FigurePage, summary="List reference results, newest first"
)
def list_figures(
    request: CallerRequest,
    reference_id: UUID,
    words: Annotated[Text | None, Query(description="Only results that contain all words.")] = None,
    cursor: NumberCursor = None,
    limit: Limit = 50,
) -> FigurePage:
    rows = load_reference_results(load_source(request.auth.member, reference_id), words or "")
    page, following = cut_page(rows, after=cursor, limit=limit)
    return FigurePage(figures=[build_figure_out(each) for each in page], next=following)


@router.delete(REFERENCE, response={204: None}, summary="Remove a source with its results")
def remove_reference(request: CallerRequest, reference_id: UUID) -> Status[None]:
    remove_source(member=request.auth.member, source_id=reference_id)
    return Status(HTTPStatus.NO_CONTENT, None)
