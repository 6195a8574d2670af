"""The secrets of a project for its hosts: their names, never their values."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters

from orchestrator.accounts.members import Member
from orchestrator.benchmarks import project_secrets as services
from orchestrator.benchmarks.selectors import load_project
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.projects.forms import NewSecretForm, SecretValueForm


@sensitive_post_parameters("value")
@for_member
def secrets(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """List the secrets, and add one."""
    project = load_project(member, slug)
    form = NewSecretForm(member, request.POST if request.method == "POST" else None)
    if form.submit(
        lambda: services.add_secret(member=member, project=project, **form.cleaned_data)
    ):
        messages.success(request, "Added.")
        return redirect("project-secrets", slug)
    context = {"project": project, "form": form, "secrets": services.load_secrets(project)}
    return render(request, "projects/secrets.html", context, status=form.status)


@sensitive_post_parameters("value")
@for_member
def secret(request: HttpRequest, member: Member, slug: str, name: str) -> HttpResponse:
    """Replace the value of a secret."""
    project = load_project(member, slug)
    record = services.load_secret(project, name)
    form = SecretValueForm(member, request.POST if request.method == "POST" else None)
    if form.submit(
        lambda: services.set_secret(member=member, project=project, name=name, **form.cleaned_data),
        default="value",
    ):
        messages.success(request, f"The value of {name} was replaced.")
        return redirect("project-secrets", slug)
    context = {"project": project, "form": form, "secret": record}
    return render(request, "projects/secret.html", context, status=form.status)


def _ask_deletion(request: HttpRequest, member: Member, slug: str, name: str) -> ConfirmationPage:
    services.load_secret(load_project(member, slug), name)
    return ConfirmationPage(
        question=f"Delete the secret {name}?",
        effects=(
            "Its value is deleted and cannot be restored. Runs of definitions that name it are "
            "refused from now on, and queued ones fail.",
        ),
        button="Delete secret",
        back=reverse("project-secrets", args=[slug]),
    )


@for_member
@confirm_first(_ask_deletion)
def delete_secret(request: HttpRequest, member: Member, slug: str, name: str) -> HttpResponse:
    services.delete_secret(member=member, project=load_project(member, slug), name=name)
    messages.success(request, f"The secret {name} was deleted.")
    return redirect("project-secrets", slug)
