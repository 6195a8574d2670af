"""The first page: recent, running and planned runs."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.templatetags.static import static

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.selectors import benchmarks_of, projects_of
from orchestrator.core.page_cache import kept
from orchestrator.fleet.selectors import hosts_of
from orchestrator.measurements.version_keys import mark_of_overview
from orchestrator.reports.saved_reports import saved_reports
from orchestrator.runs.selectors import runs_of, schedules_of
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.forms import benchmark_key
from orchestrator.web.runs.presenters import rows_of_runs

LATEST_RUNS = 8
NEXT_SCHEDULES = 5


@open_to_visitors
@for_member
def overview(request: HttpRequest, member: Member) -> HttpResponse:
    mark = mark_of_overview(member, count=LATEST_RUNS)
    if isinstance(member, Visitor):
        key = ("visited", member.sight)
        body = kept(key, mark, lambda: _visited(request, member))
        return render(request, "overview/public.html", {"body": body})
    body = kept(("overview", member.team.pk, member.role), mark, lambda: _body(request, member))
    return render(request, "overview/overview.html", {"body": body})


def _body(request: HttpRequest, member: Member) -> str:
    context = {
        "runs": rows_of_runs(member, runs_of(member)[:LATEST_RUNS]),
        "hosts": hosts_of(member),
        "projects": projects_of(member),
        "benchmarks": benchmarks_of(member),
        "schedules": schedules_of(member).filter(enabled=True).order_by("next_at")[:NEXT_SCHEDULES],
    }
    return render_to_string("overview/overview.html#body", context, request)


def _visited(request: HttpRequest, member: Visitor) -> str:
    """Return the part for visitors of a public project: its runs, and where its results are."""
    context = {
        "runs": rows_of_runs(member, runs_of(member)[:LATEST_RUNS]),
        "benchmarks": [(each, benchmark_key(each)) for each in benchmarks_of(member)],
        "reports": saved_reports(member),
    }
    return render_to_string("overview/public.html#body", context, request)


def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"), permanent=True)
