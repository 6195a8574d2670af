"""Published results: the sources of a team, and the values of each."""

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.core.dependents import DependentCount
from orchestrator.reports.reference_import import ReferenceImport, import_results, remove_source
from orchestrator.reports.reference_suites import (
    import_published,
    list_reference_suites,
    load_reference_suite,
)
from orchestrator.reports.references import load_reference_results, load_source, load_sources
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.references.forms import ReferenceForm

SOURCES_A_PAGE = 50
FIGURES_A_PAGE = 100


@for_member
def references(request: HttpRequest, member: Member) -> HttpResponse:
    page = Paginator(load_sources(member), SOURCES_A_PAGE).get_page(request.GET.get("page"))
    known = set(load_sources(member).values_list("name", flat=True))
    published = [
        (suite, load_reference_suite(suite).source.name) for suite in list_reference_suites()
    ]
    suites = [(suite, name, name in known) for suite, name in published]
    context = {"page": page, "suites": suites}
    return render(request, "references/list.html", context)


@for_member
def import_file(request: HttpRequest, member: Member) -> HttpResponse:
    """Import an uploaded file, and show its values."""
    posted = request.method == "POST"
    form = (
        ReferenceForm(member, request.POST, files=request.FILES)
        if posted
        else ReferenceForm(member)
    )
    done = form.create(lambda: import_results(member=member, new=form.new_import()), default="file")
    if done is not None:
        return _redirect_to_source(request, done)
    return render(request, "references/import.html", {"form": form}, status=form.status)


@for_member
@require_POST
def import_catalogue(request: HttpRequest, member: Member) -> HttpResponse:
    """Import the published results of the suite that the form names."""
    return _redirect_to_source(
        request, import_published(member=member, suite=request.POST.get("suite", ""))
    )


def _redirect_to_source(request: HttpRequest, done: ReferenceImport) -> HttpResponse:
    """Redirect to the page of the source, with a message about the rows."""
    messages.success(
        request,
        f"{done.rows} values read, {done.unknown} of them unknown: {done.added} added, "
        f"{done.changed} changed, {done.unchanged} unchanged.",
    )
    return redirect("reference", done.source.pk)


@for_member
def reference(request: HttpRequest, member: Member, source_id: UUID) -> HttpResponse:
    """Show the values of one source; `?q=` filters those that contain all these words."""
    source = load_source(member, source_id)
    words = request.GET.get("q", "").strip()[:200].replace("\0", "")
    page = Paginator(load_reference_results(source, words), FIGURES_A_PAGE).get_page(
        request.GET.get("page")
    )
    context = {
        "source": source,
        "page": page,
        "words": words,
        "more": f"&{urlencode({'q': words})}" if words else "",
    }
    return render(request, "references/detail.html", context)


def _ask_removal(request: HttpRequest, member: Member, source_id: UUID) -> ConfirmationPage:
    source = load_source(member, source_id)
    return ConfirmationPage(
        question=f"Remove the reference results “{source.name}”?",
        effects=("Reports no longer show them. Import the file again to bring them back.",),
        button="Remove results",
        back=reverse("reference", args=[source_id]),
        dependents=(DependentCount(title="Values", count=source.results.count()),),
    )


@for_member
@confirm_first(_ask_removal)
def remove(request: HttpRequest, member: Member, source_id: UUID) -> HttpResponse:
    name = load_source(member, source_id).name
    remove_source(member=member, source_id=source_id)
    messages.success(request, f"The reference results “{name}” were removed.")
    return redirect("references")
