"""The first page: alerts, changes, current runs, and all cases at a glance."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import get_script_prefix
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.alerts.news import load_largest_changes, load_open_alerts, read_news_version
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import load_benchmarks, load_project, load_projects
from orchestrator.comparisons.last_verdicts import load_last_verdicts
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.dispatch.first_measurement import (
    may_offer_first_measurement,
    start_first_measurement,
)
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.fleet.selectors import load_hosts
from orchestrator.histories.newest_points import load_overview_points
from orchestrator.measurements.version_keys import read_overview_version
from orchestrator.reports.saved_reports import load_saved_reports
from orchestrator.runs.selectors import RUNS_PROJECT, load_current_runs, load_runs, load_schedules
from orchestrator.runs.states import RUN_ENDED
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.alerts.presenters import build_alert_view, change_view
from orchestrator.web.forms import build_benchmark_key
from orchestrator.web.overview.benchmark_grids import build_benchmark_grids
from orchestrator.web.runs.presenters import build_run_rows

LATEST_RUNS = 8
CURRENT_RUNS = 6
NEXT_SCHEDULES = 5
#: The spans of time whose largest changes are shown, in days.
SPANS = (7, 30)


@open_to_visitors
@for_member
def overview(request: HttpRequest, member: Member) -> HttpResponse:
    if isinstance(member, Visitor):
        return _show_to_visitor(request, member)
    slug = request.GET.get("project", "")
    project = load_project(member, slug) if slug else None
    only = None if project is None else project.pk
    news = _load_news(request, member, member.team.pk, only)
    context = {
        "news": news,
        "current": load_current_runs(member, CURRENT_RUNS, project),
        "body": get_or_make_part(
            ("overview", member.team.pk, member.role, bool(news), only),
            read_overview_version(member, count=LATEST_RUNS, project=only),
            lambda: _render_body(request, member, project, measured=bool(news)),
        ),
        "projects": load_projects(member).prefetch_related(None),
        "project": project,
        "measure_here": may_offer_first_measurement(member),
    }
    return render(request, "overview/overview.html", context)


@for_member
@require_POST
def measure_here(request: HttpRequest, member: Member) -> HttpResponse:
    """Add this machine and a suite, and start a run; the page of a fetch repeats it until then."""
    run = start_first_measurement(member=member)
    wake_engine()
    return redirect("run", run.pk)


def _show_to_visitor(request: HttpRequest, visitor: Visitor) -> HttpResponse:
    """Show a public project: what changed, its runs, and where its results are."""
    team = Project.objects.values_list("team_id", flat=True).get(pk=visitor.project)
    news = _load_news(request, visitor, team, None)
    context = {
        "news": news,
        "current": load_current_runs(visitor, CURRENT_RUNS),
        "body": get_or_make_part(
            ("visited", visitor.sight, bool(news)),
            read_overview_version(visitor, count=LATEST_RUNS),
            lambda: _render_visitor_body(request, visitor, measured=bool(news)),
        ),
    }
    return render(request, "overview/public.html", context)


def _load_news(request: HttpRequest, member: Member, team: int, only: int | None) -> str:
    """Return the alerts, the changes and the grid, from the cache if they are unchanged; empty if
    nothing was measured. `only`: the project that is shown."""
    key = ("overview news", member.sight, get_script_prefix(), only)
    return get_or_make_part(
        key, read_news_version(team), lambda: _render_news(request, member, only)
    )


def _render_news(request: HttpRequest, member: Member, only: int | None) -> str:
    series = load_overview_points(member, project=only)
    if not series:
        return ""
    visits = isinstance(member, Visitor)
    changes = [
        (days, [change_view(row) for row in load_largest_changes(member, days=days, project=only)])
        for days in SPANS
    ]
    context = {
        # Alerts have notes of members.
        "alerts": []
        if visits
        else [build_alert_view(each) for each in load_open_alerts(member, project=only)],
        "visits": visits,
        "changes": changes,
        "grids": build_benchmark_grids(series, load_last_verdicts(member, project=only)),
    }
    return render_to_string("overview/_news.html", context, request)


def _render_body(
    request: HttpRequest, member: Member, project: Project | None, *, measured: bool
) -> str:
    runs, schedules = load_runs(member).filter(state__in=RUN_ENDED), load_schedules(member)
    if project is not None:
        runs = runs.filter(**{RUNS_PROJECT: project})
        schedules = schedules.filter(benchmark__project=project)
    context = {
        "measured": measured,
        "runs": build_run_rows(member, runs[:LATEST_RUNS]),
        "hosts": load_hosts(member),
        "projects": load_projects(member),
        "benchmarks": load_benchmarks(member),
        "schedules": schedules.filter(enabled=True).order_by("next_at")[:NEXT_SCHEDULES],
    }
    return render_to_string("overview/overview.html#body", context, request)


def _render_visitor_body(request: HttpRequest, member: Visitor, *, measured: bool) -> str:
    runs = load_runs(member).filter(state__in=RUN_ENDED)
    context = {
        "measured": measured,
        "runs": build_run_rows(member, runs[:LATEST_RUNS]),
        "benchmarks": [(each, build_benchmark_key(each)) for each in load_benchmarks(member)],
        "reports": load_saved_reports(member),
    }
    return render_to_string("overview/public.html#body", context, request)


def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"), permanent=True)
