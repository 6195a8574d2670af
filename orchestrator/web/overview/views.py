"""The first page: recent, running and planned runs."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.selectors import load_benchmarks, load_projects
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.dispatch.first_measurement import (
    may_offer_first_measurement,
    start_first_measurement,
)
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.fleet.selectors import load_hosts
from orchestrator.measurements.version_keys import read_overview_version
from orchestrator.reports.saved_reports import load_saved_reports
from orchestrator.runs.selectors import load_runs, load_schedules
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.forms import build_benchmark_key
from orchestrator.web.runs.presenters import build_run_rows

LATEST_RUNS = 8
NEXT_SCHEDULES = 5


@open_to_visitors
@for_member
def overview(request: HttpRequest, member: Member) -> HttpResponse:
    mark = read_overview_version(member, count=LATEST_RUNS)
    if isinstance(member, Visitor):
        key = ("visited", member.sight)
        body = get_or_make_part(key, mark, lambda: _render_visitor_body(request, member))
        return render(request, "overview/public.html", {"body": body})
    body = get_or_make_part(
        ("overview", member.team.pk, member.role), mark, lambda: _render_body(request, member)
    )
    context = {"body": body, "measure_here": may_offer_first_measurement(member)}
    return render(request, "overview/overview.html", context)


@for_member
@require_POST
def measure_here(request: HttpRequest, member: Member) -> HttpResponse:
    """Add this machine and a suite, and start a run; the page of a fetch repeats it until then."""
    run = start_first_measurement(member=member)
    wake_engine()
    return redirect("run", run.pk)


def _render_body(request: HttpRequest, member: Member) -> str:
    context = {
        "runs": build_run_rows(member, load_runs(member)[:LATEST_RUNS]),
        "hosts": load_hosts(member),
        "projects": load_projects(member),
        "benchmarks": load_benchmarks(member),
        "schedules": load_schedules(member)
        .filter(enabled=True)
        .order_by("next_at")[:NEXT_SCHEDULES],
    }
    return render_to_string("overview/overview.html#body", context, request)


def _render_visitor_body(request: HttpRequest, member: Visitor) -> str:
    """Return the part for visitors of a public project: its runs, and where its results are."""
    context = {
        "runs": build_run_rows(member, load_runs(member)[:LATEST_RUNS]),
        "benchmarks": [(each, build_benchmark_key(each)) for each in load_benchmarks(member)],
        "reports": load_saved_reports(member),
    }
    return render_to_string("overview/public.html#body", context, request)


def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"), permanent=True)
