"""Deletion of a project, after a page that shows what depends on it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.selectors import load_project
from orchestrator.retention.deletions import (
    DAYS_TO_RESTORE,
    delete_project,
    list_project_dependents,
)
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first


def _ask_deletion(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    project = load_project(member, slug)
    effects = [
        "The project and all that depends on it vanish immediately. Unfinished runs are cancelled.",
        f"You can restore it for {DAYS_TO_RESTORE} days. Then it is removed for good.",
    ]
    if project.public_since:
        effects.insert(1, "It is public: its public pages, badges and charts disappear.")
    return ConfirmationPage(
        question=f"Delete the project “{project.name}”?",
        effects=tuple(effects),
        button="Delete project",
        back=reverse("project", args=[slug]),
        dependents=list_project_dependents(member, project),
    )


@for_member
@confirm_first(_ask_deletion)
def delete(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = delete_project(member=member, slug=slug)
    messages.success(request, f"The project “{project.name}” was deleted.")
    return redirect("deleted")
