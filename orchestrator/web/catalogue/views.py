"""The catalogue of suites."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.catalogue import load_suite, load_suites
from orchestrator.reports.suite_benchmarks import add_suite_benchmark
from orchestrator.web.access import for_member
from orchestrator.web.cases import list_cases, list_expression_names
from orchestrator.web.forms import build_benchmark_key


@for_member
def catalogue(request: HttpRequest, member: Member) -> HttpResponse:
    return render(request, "catalogue/list.html", {"suites": load_suites()})


@for_member
def suite(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Show a suite: what it measures, its requirements, its cases and its definition."""
    entry = load_suite(slug)
    review = entry.review
    context = {
        "suite": entry,
        "review": entry.outcome,
        "names": list_expression_names(review.spec) if review else [],
        "cases": list_cases(review.spec, review.cases) if review else None,
    }
    return render(request, "catalogue/suite.html", context)


@for_member
@require_POST
def run_suite(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Add the benchmark of a suite to the team, and show the form of a run of it."""
    added = add_suite_benchmark(member=member, suite=slug, small="small" in request.POST)
    query = {
        "benchmark": build_benchmark_key(added.benchmark),
        # The repository of a suite has one commit: there is nothing to compare it with.
        "baseline": added.benchmark.project.default_branch,
        **({"cases": added.cases} if added.cases else {}),
    }
    return redirect(f"{reverse('run-new')}?{urlencode(query)}")
