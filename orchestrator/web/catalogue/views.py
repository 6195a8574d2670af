"""The catalogue of suites."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.catalogue import suite_named, suites
from orchestrator.web.access import for_member
from orchestrator.web.cases import expression_names, list_cases


@for_member
def catalogue(request: HttpRequest, member: Member) -> HttpResponse:
    return render(request, "catalogue/list.html", {"suites": suites()})


@for_member
def suite(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Show a suite: what it measures, its requirements, its cases and its definition."""
    found = suite_named(slug)
    told = found.review
    context = {
        "suite": found,
        "review": found.found,
        "names": expression_names(told.spec) if told else [],
        "cases": list_cases(told.spec, told.cases) if told else None,
    }
    return render(request, "catalogue/suite.html", context)
