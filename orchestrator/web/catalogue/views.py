"""The catalogue of suites."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.catalogue import load_suite, load_suites
from orchestrator.web.access import for_member
from orchestrator.web.cases import list_cases, list_expression_names


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
