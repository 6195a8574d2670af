"""Imports of large files of results: their progress, and why one failed."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.measurements.imports import load_imports
from orchestrator.web.access import for_member

IMPORTS_A_PAGE = 30


@for_member
def imports(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the page, which reloads itself while an import runs."""
    page = Paginator(load_imports(member), IMPORTS_A_PAGE).get_page(request.GET.get("page"))
    going_on = any(not each.has_ended for each in page)
    return render(request, "imports/list.html", {"page": page, "going_on": going_on})
