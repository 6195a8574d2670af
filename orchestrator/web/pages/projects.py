"""A new project: a repository of the team."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.services import create_project
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS, ProjectForm


@for_member
def new_project(request: HttpRequest, member: Member) -> HttpResponse:
    form = ProjectForm(member, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            create_project(member=member, **form.cleaned_data)
        except FORM_ERRORS as error:
            form.show_error(error, default="repository_url")
        else:
            return redirect("benchmarks")
    return render(request, "benchmarks/new_project.html", {"form": form}, status=form.status)
