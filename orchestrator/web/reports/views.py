"""Reports: the list, the page of one, a new one from chosen dimensions, and its text."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.visitors import Visitor
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.reports.charts import Chart, build_charts
from orchestrator.reports.exports import (
    ChartAddress,
    report_csv,
    report_json,
    report_markdown,
)
from orchestrator.reports.hardware import HEADS
from orchestrator.reports.provenance import load_provenance
from orchestrator.reports.report_builder import (
    Report,
    build_report,
    load_visitor_sha,
    read_report_version,
)
from orchestrator.reports.report_spec import ReportSpec, from_data, parse, to_yaml
from orchestrator.reports.saved_reports import (
    delete_report,
    load_saved_report,
    load_saved_reports,
    read_report_spec,
    save_report,
)
from orchestrator.reports.visibility import (
    Visibility,
    read_visibility,
    set_visibility,
)
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.errors import find_status
from orchestrator.web.forms import load_benchmark_choices
from orchestrator.web.pictures import build_picture_response
from orchestrator.web.refs import load_chosen_benchmark, load_chosen_run
from orchestrator.web.reports.bundle import build_bundle
from orchestrator.web.reports.claim_views import build_claims_view
from orchestrator.web.reports.forms import (
    ReportEditForm,
    ReportForm,
    ReportTextForm,
    VisibilityForm,
)
from orchestrator.web.reports.measure_again import build_measure_again
from orchestrator.web.reports.presenters import build_table_views

#: Format → (media type, function that writes it).
FORMATS: Mapping[str, tuple[str, Callable[[Report, ChartAddress], str]]] = {
    "md": (
        "text/markdown; charset=utf-8",
        lambda report, address: report_markdown(report, address=address),
    ),
    "csv": ("text/csv; charset=utf-8", lambda report, _: report_csv(report)),
    "json": ("application/json", lambda report, _: report_json(report)),
}
BUNDLE = "zip"
_CHART = re.compile(r"chart-(\d{1,3})\.svg\Z")
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
    seen = read_visibility(saved)
    build = partial(
        build_report, member, shows_hardware=seen.hardware, shows_published=seen.published
    )
    address = _build_chart_address(request, slug)
    try:
        spec = _apply_changes(member, read_report_spec(saved), request)
        run = load_chosen_run(member, request.GET.get("run", ""))
        if run is None and not wanted:
            mark = f"{saved.changed_at} {read_report_version(member, spec)}"
            key = ("report", member.sight, request.get_full_path())
            shown = get_or_make_part(key, mark, lambda: _page_parts(request, build(spec), address))
            return render(request, "reports/detail.html", {**context, **shown})
        result = build(spec, run=run)
    except (InvalidRequestError, NotFoundError) as error:
        if wanted:
            raise
        status, _ = find_status(error)
        return render(request, "reports/detail.html", {**context, "problem": error}, status=status)
    if wanted == BUNDLE:
        return _send_bundle(build_bundle(member, result, _build_bundle_page(member, slug)), slug)
    if wanted:
        return exported(result, wanted, slug, address)
    parts = _page_parts(request, result, address)
    return render(request, "reports/detail.html", {**context, **parts})


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
            address = _build_chart_address(request)
            if request.GET.get("format"):
                return exported(result, request.GET["format"], "report", address)
            context |= {**_report_context(request, result, address), "yaml": to_yaml(spec)}
    if request.headers.get("HX-Request"):
        return render(request, "reports/new.html#explorer", context)
    status = form.status
    return render(request, "reports/new.html", context, status=status)


@for_member
def save(request: HttpRequest, member: Member) -> HttpResponse:
    """Save a report from its text: an empty form, or one that another page filled in."""
    form = ReportTextForm(member, request.POST if request.method == "POST" else None)
    saved = form.create(
        lambda: save_report(
            member=member,
            source=_normalise_newlines(form.cleaned_data["source"]),
            slug=form.cleaned_data["name"] or None,
        ),
        default="source",
    )
    if saved is not None:
        return redirect("report", saved.slug)
    context = {"form": form, "title": "Save a report"}
    return render(request, "reports/edit.html", context, status=form.status)


@for_member
def edit(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    saved = load_saved_report(member, slug)
    spec = read_report_spec(saved)
    without_prose = spec.model_copy(update={"prose": ""})
    form = ReportEditForm(
        member,
        request.POST if request.method == "POST" else None,
        initial={"name": saved.slug, "source": to_yaml(without_prose), "prose": spec.prose},
    )
    changed = form.create(
        lambda: save_report(
            member=member,
            source=_insert_prose(form.cleaned_data["source"], form.cleaned_data["prose"]),
            slug=form.cleaned_data["name"] or slug,
            replace=slug,
        ),
        default="source",
    )
    if changed is not None:
        return redirect("report", changed.slug)
    context = {"form": form, "saved": saved, "title": f"Change “{saved.title}”"}
    return render(request, "reports/edit.html", context, status=form.status)


@for_member
def visibility(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Choose what visitors see of the report beyond its values."""
    saved = load_saved_report(member, slug)
    seen = read_visibility(saved)
    form = VisibilityForm(
        member,
        request.POST if request.method == "POST" else None,
        initial={"hardware": seen.hardware, "published": seen.published},
    )
    changed = form.create(
        lambda: set_visibility(
            member=member,
            slug=slug,
            visibility=Visibility(
                hardware=form.cleaned_data["hardware"], published=form.cleaned_data["published"]
            ),
        )
    )
    if changed is not None:
        messages.success(request, f"The visibility of “{saved.title}” was saved.")
        return redirect("report", slug)
    context = {"form": form, "saved": saved}
    return render(request, "reports/visibility.html", context, status=form.status)


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


def exported(report: Report, wanted: str, name: str, address: ChartAddress) -> HttpResponse:
    """Return the report, or one of its charts, as a file.

    `address` of a chart is a path. Raise NotFoundError for an unknown format or chart.
    """
    if match := _CHART.match(wanted):
        return _send_picture(report, int(match[1]), name)
    if wanted not in FORMATS:
        known = ", ".join([*FORMATS, BUNDLE, "chart-1.svg"])
        raise NotFoundError(f"there is no format {wanted}; there are {known}")
    media, write = FORMATS[wanted]
    text = write(report, lambda chart: f"{settings.BASE_URL}{address(chart)}")
    response = HttpResponse(text, content_type=media)
    response.headers["Content-Disposition"] = f'inline; filename="{name}.{wanted}"'
    return response


def _send_picture(report: Report, number: int, name: str) -> HttpResponse:
    charts = {chart.number: chart for each in build_charts(report) for chart in each}
    if number not in charts:
        raise NotFoundError(f"there is no chart {number} in this report; it has {len(charts)}")
    response = build_picture_response(charts[number].render_file())
    file_name = f"{name}-{charts[number].file_name}"
    response.headers["Content-Disposition"] = f'inline; filename="{file_name}"'
    return response


def _build_bundle_page(member: Member, slug: str) -> str:
    """Return the address of the page; empty for a shared link, whose secret files do not keep."""
    if isinstance(member, Visitor) and member.page is not None:
        return ""
    return f"{settings.BASE_URL}{reverse('report', args=[slug])}"


def _send_bundle(parts: Iterable[bytes], name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    response = StreamingHttpResponse(parts, content_type="application/zip", headers=headers)
    return cast(HttpResponse, response)


def _build_chart_address(request: HttpRequest, slug: str = "") -> ChartAddress:
    """Return the path of a chart: below the saved report, or as a format of the same page."""
    pairs = [(key, value) for key, value in _query_pairs(request) if key != "format" and value]

    def build(chart: Chart) -> str:
        if slug:
            path = reverse("report-export", args=[slug, chart.file_name])
            return f"{path}?{urlencode(pairs)}".rstrip("?")
        return f"{request.path}?{urlencode([*pairs, ('format', chart.file_name)])}"

    return build


def _page_parts(request: HttpRequest, result: Report, address: ChartAddress) -> dict[str, Any]:
    """Return the context of a saved report's page, with its tables as HTML."""
    shown = _report_context(request, result, address)
    names = ("report", "tables", "claims", "provenance", "hardware_heads")
    tables = {name: shown[name] for name in names}
    bundle = (BUNDLE, f"{shown['permalink']}{'&' if '?' in shown['permalink'] else '?'}format=zip")
    return {
        "body": render_to_string("reports/_tables.html", tables, request),
        "report": {
            "spec": result.spec,
            "commits": result.commits[:3],
            "hosts": result.hosts[:6],
            "run": result.run,
        },
        "permalink": shown["permalink"],
        "exports": [*shown["exports"], bundle],
        "again": build_measure_again(result) if result.with_host_facts else None,
    }


def _report_context(request: HttpRequest, result: Report, address: ChartAddress) -> dict[str, Any]:
    query = [(key, value) for key, value in _query_pairs(request) if key != "format" and value]
    here = f"{request.path}?{urlencode(query)}"
    record = load_provenance(result)
    return {
        "report": result,
        "tables": build_table_views(result, address),
        "hardware_heads": HEADS,
        "claims": build_claims_view(result, record),
        "provenance": record,
        "permalink": here.rstrip("?"),
        "exports": [(name, f"{here}{'&' if query else ''}format={name}") for name in FORMATS],
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


def _insert_prose(source: str, prose: str) -> str:
    """Return the YAML with the text in Markdown, if there is one."""
    source = _normalise_newlines(source)
    if not prose.strip():
        return source
    spec = parse(source)
    if spec.prose:
        raise InvalidRequestError(
            "prose: the YAML has a text as well; move it to the field Text", field="source"
        )
    return to_yaml(spec.model_copy(update={"prose": _normalise_newlines(prose)}))


def _normalise_newlines(source: str) -> str:
    return source.replace("\r\n", "\n")
