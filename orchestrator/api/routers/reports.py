"""Reports: measurements in rows and columns."""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from ninja import Query, Router, Status

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Limit, NumberCursor, cut_page
from orchestrator.api.schemas.common import Text, build_web_url
from orchestrator.api.schemas.reports import (
    ReportIn,
    ReportOut,
    ReportPage,
    ReportQuery,
    ReportSourceIn,
    ReportVisibilityIn,
    SavedReportOut,
    build_report_out,
    build_saved_out,
    build_summary_out,
)
from orchestrator.reports import saved_reports
from orchestrator.reports.charts import Chart
from orchestrator.reports.exports import report_csv, report_markdown
from orchestrator.reports.report_builder import Report, build_report
from orchestrator.reports.report_spec import parse
from orchestrator.reports.visibility import Visibility, set_visibility
from orchestrator.runs.selectors import load_run

router = Router(tags=["reports"])


def _describe_file(media: str, what: str) -> dict[str, Any]:
    return {"responses": {200: {"description": what, "content": {media: {}}}}}


@router.get("/reports", response=ReportPage, summary="List saved reports, newest first")
def list_reports(
    request: CallerRequest,
    benchmark: Text | None = None,
    cursor: NumberCursor = None,
    limit: Limit = 50,
) -> ReportPage:
    rows = saved_reports.load_saved_reports(request.auth.member)
    if benchmark:
        rows = rows.filter(benchmark__slug=benchmark)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return ReportPage(reports=[build_summary_out(each) for each in page], next=following)


@router.post("/reports", response={201: SavedReportOut}, summary="Save a report")
def save_report(request: CallerRequest, payload: ReportIn) -> Status[SavedReportOut]:
    """409 if another report has the name."""
    report = saved_reports.save_report(
        member=request.auth.member, source=payload.source, slug=payload.name
    )
    return Status(HTTPStatus.CREATED, build_saved_out(report))


@router.post("/reports/preview", response=ReportOut, summary="Create a report without saving it")
def preview_report(request: CallerRequest, payload: ReportSourceIn) -> ReportOut:
    return build_report_out(build_report(request.auth.member, parse(payload.source)))


@router.get("/reports/{slug:name}", response=ReportOut, summary="Show a report")
def show_report(request: CallerRequest, name: str, query: Query[ReportQuery]) -> ReportOut:
    return build_report_out(_report(request.auth.member, name, query))


@router.get(
    "/reports/{slug:name}/markdown",
    summary="Show a report as Markdown",
    openapi_extra=_describe_file("text/markdown", "The tables, with their provenance"),
)
def show_report_markdown(
    request: CallerRequest, name: str, query: Query[ReportQuery]
) -> HttpResponse:
    return _build_response(
        _report(request.auth.member, name, query),
        lambda report: report_markdown(report, address=partial(_get_chart_address, name)),
        "text/markdown",
    )


@router.get(
    "/reports/{slug:name}/csv",
    summary="Show a report as CSV",
    openapi_extra=_describe_file(
        "text/csv", "One table below the other; values with their intervals"
    ),
)
def show_report_csv(request: CallerRequest, name: str, query: Query[ReportQuery]) -> HttpResponse:
    return _build_response(_report(request.auth.member, name, query), report_csv, "text/csv")


@router.get(
    "/reports/{slug:name}/source", response=SavedReportOut, summary="Show the text of a report"
)
def show_report_source(request: CallerRequest, name: str) -> SavedReportOut:
    return build_saved_out(saved_reports.load_saved_report(request.auth.member, name))


@router.put("/reports/{slug:name}", response=SavedReportOut, summary="Change a report")
def change_report(request: CallerRequest, name: str, payload: ReportIn) -> SavedReportOut:
    """The name stays if the request has none."""
    report = saved_reports.save_report(
        member=request.auth.member,
        source=payload.source,
        slug=payload.name or name,
        replace=name,
    )
    return build_saved_out(report)


@router.put(
    "/reports/{slug:name}/visibility",
    response=SavedReportOut,
    summary="Change what visitors see of a report",
)
def change_report_visibility(
    request: CallerRequest, name: str, payload: ReportVisibilityIn
) -> SavedReportOut:
    """Both are false for a new report, and after a change of its benchmark."""
    report = set_visibility(
        member=request.auth.member,
        slug=name,
        visibility=Visibility(hardware=payload.hardware, published=payload.published),
    )
    return build_saved_out(report)


@router.delete("/reports/{slug:name}", response={204: None}, summary="Delete a report")
def delete_report(request: CallerRequest, name: str) -> Status[None]:
    """The results stay."""
    saved_reports.delete_report(member=request.auth.member, slug=name)
    return Status(HTTPStatus.NO_CONTENT, None)


def _report(member: Member, name: str, query: ReportQuery) -> Report:
    saved = saved_reports.load_saved_report(member, name)
    run = load_run(member, query.run) if query.run else None
    return build_report(member, query.changed(saved_reports.read_report_spec(saved)), run=run)


def _get_chart_address(name: str, chart: Chart) -> str:
    return build_web_url("report-export", name, chart.file_name)


def _build_response(report: Report, write: Callable[[Report], str], media: str) -> HttpResponse:
    return HttpResponse(write(report), content_type=f"{media}; charset=utf-8")
