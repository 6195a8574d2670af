"""Reports: the list, the page of one, a new one from chosen dimensions, and its text."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.visitors import Visitor
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.reports.exports import report_csv, report_json, report_markdown
from orchestrator.reports.provenance import load_provenance
from orchestrator.reports.report_builder import (
    Report,
    build_report,
    load_visitor_sha,
    read_report_version,
)
from orchestrator.reports.report_spec import ReportSpec, from_data, to_yaml
from orchestrator.reports.saved_reports import (
    delete_report,
    load_saved_report,
    load_saved_reports,
    read_report_spec,
    save_report,
)
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.errors import find_status
from orchestrator.web.forms import FORM_ERRORS, load_benchmark_choices
from orchestrator.web.refs import load_chosen_benchmark, load_chosen_run
from orchestrator.web.reports.forms import ReportForm, ReportTextForm
from orchestrator.web.reports.presenters import build_table_views

#: Format → (media type, function that writes it).
FORMATS = {
    "md": ("text/markdown; charset=utf-8", report_markdown),
    "csv": ("text/csv; charset=utf-8", report_csv),
    "json": ("application/json", report_json),
}
#: Parameters of the address that override fields of a saved report.
_CHANGES = ("commit", "cases", "published")


@open_to_visitors
@for_member
def reports(request: HttpRequest, member: Member) -> HttpResponse:
    context = {
        "reports": load_saved_reports(member),
        "has_benchmarks": member.has(Role.VIEWER) and bool(load_benchmark_choices(member)),
    }
    return render(request, "reports/list.html", context)


@open_to_visitors
@for_member
def report(request: HttpRequest, member: Member, slug: str, ending: str = "") -> HttpResponse:
    """Show a saved report.

    Its address may override the commit, the hosts, the cases, or name one run.
    """
    saved = load_saved_report(member, slug)
    wanted = ending or request.GET.get("format", "")
    context: dict[str, Any] = {
        "saved": saved,
        "query": request.GET,
        "placements_of_published": ("none", "columns", "rows"),
    }
    try:
        spec = _apply_changes(member, read_report_spec(saved), request)
        run = load_chosen_run(member, request.GET.get("run", ""))
        if run is None and not wanted:
            mark = f"{saved.changed_at} {read_report_version(member, spec)}"
            key = ("report", member.sight, request.get_full_path())
            shown = get_or_make_part(
                key, mark, lambda: _page_parts(request, build_report(member, spec))
            )
            return render(request, "reports/detail.html", {**context, **shown})
        result = build_report(member, spec, run=run)
    except (InvalidRequestError, NotFoundError) as error:
        if wanted:
            raise
        status, _ = find_status(error)
        return render(request, "reports/detail.html", {**context, "problem": error}, status=status)
    if wanted:
        return exported(result, wanted, slug)
    return render(request, "reports/detail.html", {**context, **_page_parts(request, result)})


@for_member
def new_report(request: HttpRequest, member: Member) -> HttpResponse:
    """Choose dimensions, with a preview of the table; a POST saves the report under a name."""
    benchmark = load_chosen_benchmark(member, request.GET.get("benchmark", ""))
    if benchmark is None:
        return render(request, "reports/new.html", {})
    query = request.GET.copy()
    query["benchmark"] = f"{benchmark.project.slug}/{benchmark.slug}"
    for name in ("row", "across"):
        query.setlist(name, [each for each in query.getlist(name) if each])
    form = ReportForm(member, benchmark, query)
    _drop_unknown_choices(form, query)
    context: dict[str, Any] = {"form": form, "query": request.GET}
    status = 200
    if form.is_valid():
        try:
            spec = form.spec()
            result = build_report(member, spec)
        except (InvalidRequestError, NotFoundError) as error:
            form.show_error(error, default="cases")
        else:
            if request.GET.get("format"):
                return exported(result, request.GET["format"], "report")
            context |= {**_report_context(request, result), "yaml": to_yaml(spec)}
    if request.headers.get("HX-Request"):
        return render(request, "reports/new.html#explorer", context)
    status = form.status
    return render(request, "reports/new.html", context, status=status)


@for_member
def save(request: HttpRequest, member: Member) -> HttpResponse:
    """Save a report from its text: an empty form, or one that another page filled in."""
    form = ReportTextForm(member, request.POST if request.method == "POST" else None)
    if form.is_valid():
        data = form.cleaned_data
        try:
            saved = save_report(
                member=member, source=_normalise_newlines(data["source"]), slug=data["name"] or None
            )
        except FORM_ERRORS as error:
            form.show_error(error, default="source")
        else:
            return redirect("report", saved.slug)
    context = {"form": form, "title": "Save a report"}
    return render(request, "reports/edit.html", context, status=form.status)


@for_member
def edit(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    saved = load_saved_report(member, slug)
    form = ReportTextForm(
        member,
        request.POST if request.method == "POST" else None,
        initial={"name": saved.slug, "source": to_yaml(read_report_spec(saved))},
    )
    if form.is_valid():
        data = form.cleaned_data
        try:
            changed = save_report(
                member=member,
                source=_normalise_newlines(data["source"]),
                slug=data["name"] or slug,
                replace=slug,
            )
        except FORM_ERRORS as error:
            form.show_error(error, default="source")
        else:
            return redirect("report", changed.slug)
    context = {"form": form, "saved": saved, "title": f"Change “{saved.title}”"}
    return render(request, "reports/edit.html", context, status=form.status)


def _ask_deletion(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    report = load_saved_report(member, slug)
    return ConfirmationPage(
        question=f"Delete the report “{report.title}”?",
        effects=("The results that it shows remain. Links to it no longer work.",),
        button="Delete report",
        back=reverse("report", args=[slug]),
    )


@for_member
@confirm_first(_ask_deletion)
def delete(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    title = load_saved_report(member, slug).title
    delete_report(member=member, slug=slug)
    messages.success(request, f"The report “{title}” was deleted.")
    return redirect("reports")


def exported(report: Report, wanted: str, name: str) -> HttpResponse:
    """Return the report as a file. Raise NotFoundError for an unknown format."""
    if wanted not in FORMATS:
        raise NotFoundError(f"there is no format {wanted}; there are {', '.join(FORMATS)}")
    media, write = FORMATS[wanted]
    response = HttpResponse(write(report), content_type=media)
    response.headers["Content-Disposition"] = f'inline; filename="{name}.{wanted}"'
    return response


def _page_parts(request: HttpRequest, result: Report) -> dict[str, Any]:
    """Return the context of a saved report's page, with its tables as HTML."""
    shown = _report_context(request, result)
    tables = {name: shown[name] for name in ("report", "tables", "provenance")}
    return {
        "body": render_to_string("reports/_tables.html", tables, request),
        "report": {
            "spec": result.spec,
            "commits": result.commits[:3],
            "hosts": result.hosts[:6],
            "run": result.run,
        },
        **{name: shown[name] for name in ("permalink", "exports", "has_chart")},
    }


def _report_context(request: HttpRequest, result: Report) -> dict[str, Any]:
    query = [(key, value) for key, value in _query_pairs(request) if key != "format" and value]
    here = f"{request.path}?{urlencode(query)}"
    tables = build_table_views(result)
    return {
        "report": result,
        "tables": tables,
        "provenance": load_provenance(result),
        "permalink": here.rstrip("?"),
        "exports": [(name, f"{here}{'&' if query else ''}format={name}") for name in FORMATS],
        "has_chart": any(each.chart for each in tables),
        "new_url": reverse("report-new"),
    }


def _query_pairs(request: HttpRequest) -> list[tuple[str, str]]:
    return [(key, value) for key, values in request.GET.lists() for value in values]


def _apply_changes(member: Member, spec: ReportSpec, request: HttpRequest) -> ReportSpec:
    """Return the report with the overrides of the address, validated like a saved one."""
    data = spec.model_dump(mode="json", exclude_defaults=True)
    overrides = {name: request.GET[name] for name in _CHANGES if request.GET.get(name)}
    if isinstance(member, Visitor) and "commit" in overrides:
        overrides["commit"] = load_visitor_sha(member, spec, overrides["commit"])
    data |= overrides
    if hosts := [name for name in request.GET.getlist("host") if name]:
        data["hosts"] = hosts
    return from_data({**data, "version": 1})


def _drop_unknown_choices(form: ReportForm, query: QueryDict) -> None:
    """Another benchmark has other dimensions and hosts: drop those of the previous one."""
    fields: dict[str, Any] = form.fields
    for name in ("row", "across", "host", "against"):
        known = {value for value, _ in fields[name].choices}
        query.setlist(name, [each for each in query.getlist(name) if each in known])


def _normalise_newlines(source: str) -> str:
    return source.replace("\r\n", "\n")
