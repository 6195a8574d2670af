"""Notes at commits of histories: create, edit and delete them on the pages that show them."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case
from orchestrator.core.errors import InvalidRequestError
from orchestrator.histories.annotations import (
    SCOPES,
    annotate,
    edit_annotation,
    load_annotation,
    remove_annotation,
)
from orchestrator.histories.evidence import find_commit
from orchestrator.histories.histories import load_series
from orchestrator.results.models import Series
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.redirects import read_back, redirect_back


@for_member
@require_POST
def write(request: HttpRequest, member: Member, series_id: int, sha: str) -> HttpResponse:
    """Create a note at a commit of a series; `scope` is "series" or wider."""
    series = load_series(member, series_id)
    annotate(
        member=member,
        commit=find_commit(series, sha),
        text=request.POST.get("text", ""),
        target=_choose_annotation_target(series, request.POST.get("scope", "series")),
    )
    return redirect_back(request, "history")


@for_member
@require_POST
def edit(request: HttpRequest, member: Member, annotation_id: UUID) -> HttpResponse:
    text = request.POST.get("text", "")
    edit_annotation(member=member, annotation_id=annotation_id, text=text)
    return redirect_back(request, "history")


def _ask_deletion(request: HttpRequest, member: Member, annotation_id: UUID) -> ConfirmationPage:
    annotation = load_annotation(member, annotation_id)
    return ConfirmationPage(
        question=f"Delete the annotation at {annotation.commit.short_sha}?",
        effects=(annotation.text,),
        button="Delete annotation",
        back=read_back(request, "history"),
    )


@for_member
@confirm_first(_ask_deletion)
def delete(request: HttpRequest, member: Member, annotation_id: UUID) -> HttpResponse:
    remove_annotation(member=member, annotation_id=annotation_id)
    return redirect_back(request, "history")


def _choose_annotation_target(series: Series, scope: str) -> Series | Case | Benchmark | None:
    if scope not in SCOPES:
        raise InvalidRequestError(f"expected one of {', '.join(SCOPES)}", field="scope")
    meant: dict[str, Series | Case | Benchmark] = {
        "series": series,
        "case": series.case,
        "benchmark": series.benchmark,
    }
    return meant.get(scope)
