"""A project's repository: its fetches, URL, deploy key or token, and the server's SSH key."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks import access as services
from orchestrator.benchmarks import host_keys
from orchestrator.benchmarks.fetch_requests import load_fetch, request_fetch
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import change_project, clone_again, fetch_now
from orchestrator.benchmarks.selectors import load_project
from orchestrator.operations.fetch_waits import is_fetch_awaited
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.projects.forms import AccessTokenForm, ProjectChangeForm


@for_member
@require_GET
def fetch_state(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Return the part of the page about the fetch, for polling.

    `?wait=`: the request that waits.
    """
    project = load_project(member, slug)
    fetch, wait = load_fetch(project), request.GET.get("wait", "")
    is_awaited = is_fetch_awaited(fetch, wait)
    context = {"project": project, "fetch": fetch, "wait": wait, "is_awaited": is_awaited}
    return render(request, "projects/_fetch.html", context)


@for_member
@require_POST
def fetch(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    fetch_now(member=member, project=load_project(member, slug))
    return redirect("project", slug)


def _ask_clone(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    project = load_project(member, slug)
    return ConfirmationPage(
        question=f"Clone the repository of {project.name} again?",
        effects=(
            "A new clone replaces the local mirror. Use it after large files were removed from the "
            "history: a fetch alone does not make the mirror smaller.",
            "A commit that no branch or tag contains can no longer be measured afterwards.",
        ),
        button="Clone again",
        back=reverse("project", args=[slug]),
    )


@for_member
@confirm_first(_ask_clone)
def clone_again_now(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    clone_again(member=member, project=load_project(member, slug))
    return redirect("project", slug)


@for_member
def repository(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Show and change the name, the URL and the default branch."""
    project = load_project(member, slug)
    known = {
        "name": project.name,
        "repository_url": project.repository_url,
        "default_branch": project.default_branch,
    }
    form = ProjectChangeForm(
        member, request.POST if request.method == "POST" else None, initial=known
    )
    if form.submit(
        lambda: change_project(member=member, project=project, **form.cleaned_data),
        default="repository_url",
    ):
        messages.success(request, "Saved.")
        return redirect("project", slug)
    context = {"project": project, "form": form}
    return render(request, "projects/repository.html", context, status=form.status)


@for_member
def repository_access(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = load_project(member, slug)
    form = AccessTokenForm(member, request.POST if request.method == "POST" else None)
    if form.submit(
        lambda: services.save_token(
            member=member,
            project=project,
            token=form.cleaned_data["token"].strip(),
            username=form.cleaned_data["username"].strip(),
        ),
        default="token",
    ):
        request_fetch(project)
        messages.success(request, "Saved. The repository is being fetched with it.")
        return redirect("project-access", slug)
    context = {"project": project, "form": form, **_build_access_context(project)}
    return render(request, "projects/access.html", context, status=form.status)


def _ask_new_key(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    project = load_project(member, slug)
    return ConfirmationPage(
        question=f"Generate a new deploy key for {project.name}?",
        effects=(
            "It replaces the stored credential. Fetches of a private repository fail until you add "
            "the new public key on the git server.",
        ),
        button="Generate key",
        back=reverse("project-access", args=[slug]),
    )


@for_member
@confirm_first(_ask_new_key)
def generate_key(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    services.generate_deploy_key(member=member, project=load_project(member, slug))
    messages.success(request, "A deploy key was generated. Add its public key to the git server.")
    return redirect("project-access", slug)


def _ask_access_removal(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    project = load_project(member, slug)
    return ConfirmationPage(
        question=f"Remove the credential of {project.name}?",
        effects=(
            "Fetches of a private repository fail from now on. The credential is deleted and "
            "cannot be restored.",
        ),
        button="Remove credential",
        back=reverse("project-access", args=[slug]),
    )


@for_member
@confirm_first(_ask_access_removal)
def remove_access(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    services.remove_credential(member=member, project=load_project(member, slug))
    messages.success(request, "Removed.")
    return redirect("project-access", slug)


@for_member
@require_POST
def accept_host_key(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Accept the host key whose fingerprint the page showed, and no other."""
    fingerprint = request.POST.get("fingerprint", "")
    project = load_project(member, slug)
    host_keys.accept_host_key(member=member, project=project, fingerprint=fingerprint)
    return _request_fetch(
        request, project, "The new host key is pinned; the repository is fetched again."
    )


@for_member
@require_POST
def reject_host_key(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = load_project(member, slug)
    host_keys.reject_offered_key(member=member, project=project)
    return _request_fetch(
        request, project, "The pinned host key stays; the repository is fetched again."
    )


def _ask_forgetting(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    project = load_project(member, slug)
    return ConfirmationPage(
        question=f"Forget the pinned host key of {project.name}?",
        effects=(
            "Nothing is fetched until a maintainer has accepted the key that the server shows "
            "next.",
        ),
        button="Forget key",
        back=reverse("project-access", args=[slug]),
    )


@for_member
@confirm_first(_ask_forgetting)
def forget_host_key(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = load_project(member, slug)
    host_keys.forget_host_key(member=member, project=project)
    return _request_fetch(
        request, project, "No host key is pinned. Pitwall now requests the key of the server."
    )


def _request_fetch(request: HttpRequest, project: Project, message: str) -> HttpResponse:
    """After a decision about the host key: request the fetch and show the page again."""
    request_fetch(project)
    messages.success(request, message)
    return redirect("project-access", project.slug)


def _build_access_context(project: Project) -> dict[str, Any]:
    return {
        "access": services.load_repository_access(project),
        "scheme": services.read_scheme(project),
        "fetch": load_fetch(project),
    }
