"""The fetches of a project's repository: their state, a button that requests one, and the URL."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.fetch_requests import fetch_of
from orchestrator.benchmarks.projects import change_repository, clone_again, fetch_now
from orchestrator.benchmarks.selectors import project_for
from orchestrator.operations.fetch_waits import is_fetch_awaited
from orchestrator.web.access import for_member
from orchestrator.web.definition_forms import RepositoryForm
from orchestrator.web.forms import FORM_ERRORS


@for_member
@require_GET
def state(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """The part of the page that shows the fetch, for polling; `?wait=`: the request that waits."""
    project = project_for(member, slug)
    fetch, wait = fetch_of(project), request.GET.get("wait", "")
    is_awaited = is_fetch_awaited(fetch, wait)
    context = {"project": project, "fetch": fetch, "wait": wait, "is_awaited": is_awaited}
    return render(request, "benchmarks/_fetch.html", context)


@for_member
@require_POST
def fetch(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    fetch_now(member=member, project=project_for(member, slug))
    return redirect("project", slug)


@for_member
@require_POST
def clone(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    clone_again(member=member, project=project_for(member, slug))
    return redirect("project", slug)


@for_member
def repository(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """The URL and the default branch, to be corrected."""
    project = project_for(member, slug)
    known = {
        "repository_url": project.repository_url,
        "default_branch": project.default_branch,
    }
    form = RepositoryForm(member, request.POST if request.method == "POST" else None, initial=known)
    if form.is_valid():
        try:
            change_repository(member=member, project=project, **form.cleaned_data)
        except FORM_ERRORS as error:
            form.show_error(error, default="repository_url")
        else:
            return redirect("project", slug)
    context = {"project": project, "form": form}
    return render(request, "benchmarks/repository.html", context, status=form.status)
