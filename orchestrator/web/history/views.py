"""Metrics along the commits: the page, the data of its charts, and single points."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import get_script_prefix
from django.views.decorators.http import require_GET, require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import load_benchmarks
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.histories.annotations import find_annotated_series
from orchestrator.histories.data import build_history_data
from orchestrator.histories.evidence import find_commit, load_point_details
from orchestrator.histories.histories import (
    HistoryChoices,
    Part,
    load_history_choices,
    load_series,
    load_series_history,
    read_choices_version,
)
from orchestrator.histories.reports import History
from orchestrator.histories.response import build_response, compress_text
from orchestrator.histories.series_header import (
    SeriesHeader,
    load_series_header,
    read_history_version,
)
from orchestrator.regressions.change_points import (
    ChangeSummary,
    dismiss,
    load_baseline,
    load_series_baselines,
    load_series_changes,
    remove_baseline,
    store_baseline,
)
from orchestrator.regressions.confirmations import confirm_now
from orchestrator.results.models import Baseline
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.forms import build_benchmark_key, build_choices
from orchestrator.web.history.presenters import (
    AnnotationRow,
    ChartLine,
    HistorySelection,
    PointRow,
    build_annotation_rows,
    build_chart_config,
    build_point_rows,
    compare_url,
    select_history,
)
from orchestrator.web.history_drawing import draw_history
from orchestrator.web.redirects import read_back, redirect_back
from orchestrator.web.refs import find_chosen_benchmark

#: Rows of the table per page.
ROWS = 25


@open_to_visitors
@for_member
def history(request: HttpRequest, member: Member) -> HttpResponse:
    """Show histories. Missing or outdated choices default to the first one."""
    benchmarks = list(load_benchmarks(member))
    benchmark = find_chosen_benchmark(benchmarks, member, request.GET.get("benchmark", ""))
    context: dict[str, Any] = {"benchmarks": build_choices(benchmarks)}
    if benchmark is not None:
        choices = _load_choices(member, benchmark)
        selection = select_history(member, benchmark, choices, request.GET)
        context |= {"key": build_benchmark_key(benchmark), "selection": selection}
        context |= _build_history_context(request, member, selection)
    return render(request, "history/history.html", context)


@open_to_visitors
@for_member
@require_GET
def data(request: HttpRequest, member: Member, series_id: int) -> HttpResponse:
    """Return the points of one series as columns, from the cache if they are unchanged."""
    series, branch = load_series_header(member, series_id), request.GET.get("branch", "")
    again = "If-None-Match" in request.headers and branch in ("", series.default_branch)
    body = get_or_make_part(
        ("history data", series),
        read_history_version(series.id) if again else None,
        lambda: compress_text(build_history_data(series, branch)),
    )
    return build_response(request, body)


@open_to_visitors
@for_member
@require_GET
def commit(request: HttpRequest, member: Member, series_id: int, sha: str) -> HttpResponse:
    """Describe a commit of a series in few words."""
    record = find_commit(load_series(member, series_id), sha)
    facts = {
        "commit": record.sha,
        "subject": record.subject,
        "author": record.author,
        "committed_at": record.committed_at,
    }
    return JsonResponse(facts, headers={"Cache-Control": "private, max-age=600"})


@open_to_visitors
@for_member
@require_GET
def point(request: HttpRequest, member: Member, series_id: int, sha: str) -> HttpResponse:
    """Show a point with its trials: as a page, or as the panel of the page of histories."""
    series = load_series(member, series_id)
    branch = request.GET.get("branch", "")
    details = load_point_details(series, sha, branch)
    shown = next(iter(details.history.points), None)
    context = {
        "details": details,
        "history": details.history,
        "point": shown,
        "series": series,
        "key": build_benchmark_key(series.benchmark),
        "compare_url": compare_url(details.history, shown) if shown else None,
        "may_write": member.has(Role.MEMBER),
        "back": request.GET.get("back") or request.get_full_path(),
    }
    partial = "#panel" if request.GET.get("panel") else ""
    return render(request, f"history/point.html{partial}", context)


@for_member
@require_POST
def add_baseline(request: HttpRequest, member: Member, series_id: int, sha: str) -> HttpResponse:
    """Start the history again at this commit: of the series, or of all series of its case."""
    series = load_series(member, series_id)
    whole_case = request.POST.get("scope") == "case"
    store_baseline(
        member=member,
        commit=find_commit(series, sha),
        reason=request.POST.get("reason", ""),
        series=None if whole_case else series,
        case=series.case if whole_case else None,
    )
    return redirect_back(request, "history")


def _ask_baseline_removal(
    request: HttpRequest, member: Member, baseline_id: UUID
) -> ConfirmationPage:
    baseline = load_baseline(member, baseline_id)
    return ConfirmationPage(
        question=f"Remove the new baseline at {baseline.commit.short_sha}?",
        effects=("Earlier measurements count again, and changes are detected again.",),
        button="Remove baseline",
        back=read_back(request, "history"),
    )


@for_member
@confirm_first(_ask_baseline_removal)
def delete_baseline(request: HttpRequest, member: Member, baseline_id: UUID) -> HttpResponse:
    """Remove the start of a history: earlier measurements count again."""
    remove_baseline(member=member, baseline_id=baseline_id)
    return redirect_back(request, "history")


@for_member
@require_POST
def dismiss_change(request: HttpRequest, member: Member, change_id: UUID) -> HttpResponse:
    dismiss(member=member, change_id=change_id, reason=request.POST.get("reason", ""))
    return redirect_back(request, "history")


@for_member
@require_POST
def confirm_change(request: HttpRequest, member: Member, change_id: UUID) -> HttpResponse:
    """Measure both commits of a change point again, in turns."""
    run = confirm_now(member=member, change_id=change_id)
    wake_engine()
    messages.success(request, "Both commits are measured again; this is the run.")
    return redirect("run", run.pk)


def _load_choices(member: Member, benchmark: Benchmark) -> HistoryChoices:
    key = ("history choices", member.sight, benchmark.pk)
    return get_or_make_part(
        key, read_choices_version(benchmark), lambda: load_history_choices(member, benchmark)
    )


def _build_history_context(
    request: HttpRequest, member: Member, selection: HistorySelection
) -> dict[str, Any]:
    """Return the table of one line, and the changes of all; the charts load their own data."""
    if not selection.lines:
        return {}
    query = request.GET
    line = _find_table_line(selection, query.get("table", ""))
    known = {each.series.pk: load_series_header(member, each.series.pk) for each in selection.lines}
    shown, rows, table = _load_table_page(request, member, known[line.series.pk], line)
    return {
        "history": shown,
        "line": line,
        "rows": rows,
        "table": table,
        "drawing": draw_history(shown),
        "nothing_valid": shown.points and all(each.value is None for each in shown.points),
        "tables": [
            (each, _build_address(query, table=str(each.number))) for each in selection.lines
        ],
        "older": _build_older_address(shown, query),
        "newest": _build_address(query) if query.get("before") else None,
        "config": build_chart_config(selection, relative=query.get("scale") == "change"),
        "changes": _list_changes(selection, known),
        "baselines": _list_baselines(selection, known),
        "notes": _load_annotation_rows(known),
        "may_write": member.has(Role.MEMBER),
        "relative": query.get("scale") == "change",
        "other_scale": _build_address(
            query, scale="" if query.get("scale") == "change" else "change"
        ),
    }


def _list_changes(
    selection: HistorySelection, known: Mapping[int, SeriesHeader]
) -> list[tuple[ChartLine, ChangeSummary]]:
    """Return the changes on the charts, newest first, each with the first line that has it."""
    charted_ids = {point.id for each in known.values() for point in each.shifts.points}
    if not charted_ids:
        return []
    marks = load_series_changes(known)
    lines = {each.series.pk: each for each in reversed(selection.lines)}
    return [
        (line, mark)
        for number, line in lines.items()
        for mark in reversed(marks.get(number, ()))
        if mark.id in charted_ids
    ]


def _load_annotation_rows(known: Mapping[int, SeriesHeader]) -> list[AnnotationRow]:
    """Return notes at commits of the lines, newest commit first."""
    annotations = {mark.id: mark for each in known.values() for mark in each.shifts.annotations}
    measured = find_annotated_series(known, annotations.values()) if annotations else {}
    return build_annotation_rows(annotations.values(), measured)


def _list_baselines(
    selection: HistorySelection, known: Mapping[int, SeriesHeader]
) -> list[tuple[ChartLine, Baseline]]:
    begun = [each for each in selection.lines if known[each.series.pk].shifts.baseline]
    baselines = load_series_baselines([each.series for each in begun]) if begun else {}
    return [(each, baselines[each.series.pk]) for each in begun if each.series.pk in baselines]


def _load_table_page(
    request: HttpRequest, member: Member, series: SeriesHeader, line: ChartLine
) -> tuple[History, list[PointRow], str]:
    """Return a page of the table of a line, with its HTML, from the cache if it is unchanged."""
    is_default = line.branch == series.default_branch
    mark = read_history_version(series.id) if is_default else None
    part = Part(limit=ROWS, before=request.GET.get("before", ""), every=True)

    def made() -> tuple[History, list[PointRow], str]:
        shown = load_series_history(line.series, line.branch, part)
        rows = build_point_rows(shown)
        context = {"history": shown, "rows": rows, "visitor": isinstance(member, Visitor)}
        return shown, rows, render_to_string("history/_table.html", context, request)

    return get_or_make_part(
        ("history table", series, line.branch, part, get_script_prefix()), mark, made
    )


def _find_table_line(selection: HistorySelection, wanted: str) -> ChartLine:
    return next(
        (each for each in selection.lines if str(each.number) == wanted), selection.lines[0]
    )


def _build_older_address(shown: History, query: QueryDict) -> str | None:
    if not shown.first or not shown.points:
        return None
    return _build_address(query, before=shown.points[0].commit.short_sha)


def _build_address(query: QueryDict, **changes: str) -> str:
    """Return the address of this view with some parameters changed, at the latest rows."""
    changed = query.copy()
    for name in ("before", *changes):
        changed.pop(name, None)
    for name, value in changes.items():
        if value:
            changed[name] = value
    return f"?{changed.urlencode()}"
