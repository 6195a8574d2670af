"""Projects: a new one, and the page of one with its retention, definitions and change rules."""

import contextlib
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.benchmarks.fetch_requests import load_fetch
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.refs import resolve_as_fetched
from orchestrator.benchmarks.selectors import load_project
from orchestrator.benchmarks.services import (
    build_slug,
    find_definition_files,
    import_definition,
    set_change_rules,
)
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError
from orchestrator.measurements.removals import load_newest_removals, sum_removals
from orchestrator.regressions.machine_time import sum_used_s
from orchestrator.retention.pins import load_kept, load_pin, load_pins, pin_commit, unpin
from orchestrator.retention.settings import load_retention, save_retention
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.projects.forms import (
    ChangeRulesForm,
    ImportForm,
    PinForm,
    ProjectForm,
    RetentionForm,
    build_initial_retention,
)


@for_member
def new_project(request: HttpRequest, member: Member) -> HttpResponse:
    form = ProjectForm(member, request.POST if request.method == "POST" else None)
    project = form.create(
        lambda: create_project(member=member, **form.cleaned_data), default="repository_url"
    )
    if project is not None:
        return redirect("project", project.slug)
    return render(request, "projects/new.html", {"form": form}, status=form.status)


@for_member
def import_benchmark(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Show the definitions in the project's repository, each with a button that imports it."""
    project = load_project(member, slug)
    if "look" in request.POST:
        return _fetch_name(member, project, request.POST["look"].strip()[:200])
    form = ImportForm(member, request.POST if request.method == "POST" else None)
    definition = form.create(
        lambda: import_definition(member=member, project=project, **form.cleaned_data),
        default="path",
    )
    if definition is not None:
        return redirect("benchmark", project.slug, definition.benchmark.slug)
    ref = request.GET.get("ref", "").strip()
    context = {"project": project, "form": form, "ref": ref, **_load_definitions(project, ref)}
    return render(request, "projects/import.html", context, status=form.status)


@for_member
def change_rules(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = load_project(member, slug)
    posted = request.POST if request.method == "POST" else None
    form = ChangeRulesForm(
        member,
        posted,
        initial={
            "confirm": project.confirm_changes,
            "bisect": project.bisect_changes,
            "machine_minutes_a_day": project.machine_minutes_a_day,
        },
    )
    if form.submit(
        lambda: set_change_rules(
            member=member,
            project=project,
            confirm=form.cleaned_data["confirm"],
            bisect=form.cleaned_data["bisect"],
            minutes_a_day=form.cleaned_data["machine_minutes_a_day"],
        ),
        default="machine_minutes_a_day",
    ):
        messages.success(request, "Saved.")
        return redirect("project-changes", slug)
    used = sum_used_s(project, utc_now())
    context = {"project": project, "form": form, "used": used}
    return render(request, "projects/change_rules.html", context, status=form.status)


@for_member
def project(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Show the project with its retention; a POST changes the retention."""
    record = load_project(member, slug)
    posted = request.POST if request.method == "POST" else None
    form = RetentionForm(member, posted, initial=build_initial_retention(load_retention(record)))
    if form.submit(
        lambda: save_retention(member=member, project=record, wanted=form.build_retention()),
        default="files_days",
    ):
        messages.success(request, "The retention was changed and applies within a minute.")
        return redirect("project", slug)
    return _render_project_page(request, member, record, form, PinForm(member))


@for_member
@require_POST
def pin(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Keep a commit permanently."""
    record = load_project(member, slug)
    form = PinForm(member, request.POST)
    if form.submit(
        lambda: pin_commit(member=member, project=record, **form.cleaned_data), default="ref"
    ):
        return redirect("project", slug)
    retention = RetentionForm(member, initial=build_initial_retention(load_retention(record)))
    return _render_project_page(request, member, record, retention, form, status=form.status)


def _ask_unpinning(
    request: HttpRequest, member: Member, slug: str, pin_id: int
) -> ConfirmationPage:
    pin = load_pin(load_project(member, slug), pin_id)
    return ConfirmationPage(
        question=f"Unpin {pin}?",
        effects=("Data that is past the retention of the project is removed within minutes.",),
        button="Unpin",
        back=reverse("project", args=[slug]),
    )


@for_member
@confirm_first(_ask_unpinning)
def remove_pin(request: HttpRequest, member: Member, slug: str, pin_id: int) -> HttpResponse:
    unpin(member=member, project=load_project(member, slug), pin_id=pin_id)
    return redirect("project", slug)


def _fetch_name(member: Member, project: Project, ref: str) -> HttpResponse:
    """Request a fetch for an unknown name; then the page shows the commit, or the error.

    The page itself requests no fetch: crawlers and previews of links open pages as well.
    """
    member.require(Role.MEMBER, to="look up a name in the repository")
    with resolve_as_fetched(), contextlib.suppress(InvalidRequestError):
        find_definition_files(project=project, ref=ref)
    return redirect(f"{reverse('project-import', args=[project.slug])}?{urlencode({'ref': ref})}")


def _load_definitions(project: Project, ref: str) -> dict[str, Any]:
    """Return the chosen commit and its definition files, or why there is none."""
    try:
        commit, paths = find_definition_files(project=project, ref=ref)
    except InvalidRequestError as error:
        return {"problem": str(error)}
    return {"commit": commit, "files": _build_definition_rows(project, commit, paths)}


def _build_definition_rows(
    project: Project, commit: Commit, paths: list[str]
) -> list[dict[str, Any]]:
    kept = {each.repository_path: each for each in project.benchmarks.exclude(repository_path="")}
    slugs = set(project.benchmarks.values_list("slug", flat=True))
    return [
        {
            "path": path,
            "slug": kept[path].slug if path in kept else build_slug(project, path),
            "benchmark": kept.get(path),
            "takes_over": path not in kept and build_slug(project, path) in slugs,
        }
        for path in paths
    ]


def _render_project_page(
    request: HttpRequest,
    member: Member,
    record: Project,
    form: RetentionForm,
    pin_form: PinForm,
    status: int | None = None,
) -> HttpResponse:
    fetch = load_fetch(record)
    context = {
        "fetch": fetch,
        "is_awaited": fetch.is_going_on,
        "project": record,
        "form": form,
        "pin_form": pin_form,
        "pins": load_pins(record),
        "held": _list_retained_commits(record),
        "totals": sum_removals(record),
        "log": load_newest_removals(record),
    }
    return render(request, "projects/detail.html", context, status=status or form.status)


def _list_retained_commits(record: Project) -> list[dict[str, Any]]:
    """Return commits that are kept for a reason other than their own pin."""
    kept = load_kept(record)
    reasons = {
        pk: [*kept.commits.get(pk, ()), *kept.points.get(pk, ())]
        for pk in {*kept.commits, *kept.points}
    }
    other_reasons = {
        pk: [why for why in each if not why.startswith("pinned: ")] for pk, each in reasons.items()
    }
    commits = Commit.objects.in_bulk([pk for pk, each in other_reasons.items() if each])
    rows = sorted(commits.values(), key=lambda each: each.committed_at, reverse=True)
    return [{"commit": each, "reasons": other_reasons[each.pk]} for each in rows]
