"""Imports of results: their progress, why one failed, and the preview of a history."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import load_benchmarks
from orchestrator.dispatch.wakeups import wake_imports
from orchestrator.importers.document import parse_instant
from orchestrator.measurements.history_import import (
    discard_history,
    queue_history,
    start_history,
)
from orchestrator.measurements.imports import import_for, load_imports
from orchestrator.results.models import ResultImport
from orchestrator.web.access import for_member
from orchestrator.web.imports.forms import HistoryForm, StartForm

IMPORTS_A_PAGE = 30


@for_member
def imports(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the page, which reloads itself while an import runs."""
    page = Paginator(load_imports(member), IMPORTS_A_PAGE).get_page(request.GET.get("page"))
    going_on = any(each.is_going_on for each in page)
    return render(request, "imports/list.html", {"page": page, "going_on": going_on})


@for_member
def new_history(request: HttpRequest, member: Member) -> HttpResponse:
    """Send the file of another tool; a worker writes its preview."""
    posted = request.method == "POST"
    form = HistoryForm(
        member,
        request.POST if posted else None,
        files=request.FILES if posted else None,
        initial={"project": request.GET.get("project", "")},
    )
    made = form.create(lambda: _queue(member, form), default="file")
    if made is not None:
        wake_imports()
        return redirect("import", made.pk)
    return render(request, "imports/new.html", {"form": form}, status=form.status)


def _queue(member: Member, form: HistoryForm) -> ResultImport:
    with NamedTemporaryFile() as kept:
        form.write_to(kept)
        kept.flush()
        return queue_history(
            member=member,
            path=Path(kept.name),
            project=form.cleaned_data["project"],
            name=form.get_name(),
            options=form.build_options(),
        )


@for_member
def result_import(request: HttpRequest, member: Member, import_id: UUID) -> HttpResponse:
    """Show one import, which reloads itself while it is processed."""
    record = import_for(member, import_id)
    return _show_import(request, member, record, StartForm(member))


@for_member
@require_POST
def start(request: HttpRequest, member: Member, import_id: UUID) -> HttpResponse:
    record = import_for(member, import_id)
    form = StartForm(member, request.POST)
    if form.submit(
        lambda: start_history(
            member=member,
            import_id=import_id,
            unknown_commits=form.cleaned_data["unknown_commits"],
        )
    ):
        wake_imports()
        return redirect("import", import_id)
    return _show_import(request, member, record, form)


@for_member
@require_POST
def discard(request: HttpRequest, member: Member, import_id: UUID) -> HttpResponse:
    name = import_for(member, import_id).name
    discard_history(member=member, import_id=import_id)
    messages.success(request, f"{name} was discarded. Nothing of it was imported.")
    return redirect("imports")


def _show_import(
    request: HttpRequest, member: Member, record: ResultImport, form: StartForm
) -> HttpResponse:
    preview = _build_preview(record.preview) if record.preview and record.has_preview else None
    context = {
        "import": record,
        "preview": preview,
        "benchmarks": _load_imported_benchmarks(member, record, preview) if preview else [],
        "form": form,
    }
    return render(request, "imports/detail.html", context, status=form.status)


def _load_imported_benchmarks(
    member: Member, record: ResultImport, preview: Mapping[str, Any]
) -> QuerySet[Benchmark]:
    """Return the benchmarks of a history that exist; one without known commits may be left out."""
    slugs = [each["slug"] for each in preview["benchmarks"]]
    return load_benchmarks(member).filter(project__slug=record.project, slug__in=slugs)


def _build_preview(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the preview with dates as such; `missing` counts the unknown commits."""
    commits = [{**each, "at": _parse(each["at"])} for each in stored["unknown_commits"]]
    return {
        **stored,
        "first_at": _parse(stored["first_at"]),
        "last_at": _parse(stored["last_at"]),
        "unknown_commits": commits,
        "missing": stored["commits"] - stored["matched"],
    }


def _parse(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
