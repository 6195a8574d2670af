"""How git opens a project's repository: its deploy key or token, and the key of its SSH server."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks import access as services
from orchestrator.benchmarks import host_keys
from orchestrator.benchmarks.fetch_requests import fetch_of, request_fetch
from orchestrator.benchmarks.git_access import TOKEN_USER
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import project_for
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS, TeamForm


class TokenForm(TeamForm):
    token = forms.CharField(
        max_length=500,
        label="Access token",
        help_text="It needs to read the repository and nothing else. It is sealed, and shown to "
        "nobody again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    username = forms.CharField(
        required=False,
        max_length=100,
        label="User name",
        help_text=f"Empty: {TOKEN_USER}, which GitHub, GitLab and Gitea take with any token.",
        widget=forms.TextInput({"spellcheck": "false", "autocomplete": "off"}),
    )


@for_member
def repository_access(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = project_for(member, slug)
    form = TokenForm(member, request.POST if request.method == "POST" else None)
    if form.is_valid():
        data = form.cleaned_data
        try:
            services.save_token(
                member=member,
                project=project,
                token=data["token"].strip(),
                username=data["username"].strip(),
            )
        except FORM_ERRORS as error:
            form.show_error(error, default="token")
        else:
            request_fetch(project)
            messages.success(request, "Saved; the repository is fetched with it now.")
            return redirect("project-access", slug)
    context = {"project": project, "form": form, **_shown(project)}
    return render(request, "benchmarks/access.html", context, status=form.status)


@for_member
@require_POST
def generate_key(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    services.generate_deploy_key(member=member, project=project_for(member, slug))
    messages.success(request, "A deploy key was generated. Add its public half on the git server.")
    return redirect("project-access", slug)


@for_member
@require_POST
def remove(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    services.remove_credential(member=member, project=project_for(member, slug))
    messages.success(request, "Removed.")
    return redirect("project-access", slug)


@for_member
@require_POST
def accept_host_key(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """The key whose fingerprint the page showed, and no other."""
    fingerprint = request.POST.get("fingerprint", "")
    project = project_for(member, slug)
    host_keys.accept_host_key(member=member, project=project, fingerprint=fingerprint)
    return _fetched_again(
        request, project, "The new host key is pinned; the repository is fetched again."
    )


@for_member
@require_POST
def keep_host_key(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = project_for(member, slug)
    host_keys.keep_host_key(member=member, project=project)
    return _fetched_again(
        request, project, "The pinned host key stays; the repository is fetched again."
    )


@for_member
@require_POST
def forget_host_key(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = project_for(member, slug)
    host_keys.forget_host_key(member=member, project=project)
    return _fetched_again(
        request, project, "No host key is pinned. The server is asked for its key now."
    )


def _fetched_again(request: HttpRequest, project: Project, message: str) -> HttpResponse:
    """After a decision about the host key: the fetch that it allows, and the page again."""
    request_fetch(project)
    messages.success(request, message)
    return redirect("project-access", project.slug)


def _shown(project: Project) -> dict[str, Any]:
    return {
        "access": services.row_of(project),
        "scheme": services.scheme_of(project),
        "fetch": fetch_of(project),
    }
