"""Published figures: the sources of a team, and what each of them says."""

from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.results.importing import remove_source
from orchestrator.results.references import results_of, source_for, sources_of
from orchestrator.web.access import for_member

SOURCES_A_PAGE = 50
FIGURES_A_PAGE = 100


@for_member
def references(request: HttpRequest, member: Member) -> HttpResponse:
    page = Paginator(sources_of(member), SOURCES_A_PAGE).get_page(request.GET.get("page"))
    return render(request, "references/list.html", {"page": page})


@for_member
def reference(request: HttpRequest, member: Member, source_id: UUID) -> HttpResponse:
    """The figures of one source; `?q=` shows those in which all these words occur."""
    source = source_for(member, source_id)
    words = request.GET.get("q", "").strip()[:200].replace("\0", "")
    page = Paginator(results_of(source, words), FIGURES_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "source": source,
        "page": page,
        "words": words,
        "more": f"&{urlencode({'q': words})}" if words else "",
    }
    return render(request, "references/detail.html", context)


@require_POST
@for_member
def remove(request: HttpRequest, member: Member, source_id: UUID) -> HttpResponse:
    remove_source(member=member, source_id=source_id)
    return redirect("references")
