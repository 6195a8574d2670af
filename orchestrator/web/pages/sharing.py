"""What people without an account see: public projects, and links to single pages."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.benchmarks.selectors import project_for, projects_of
from orchestrator.benchmarks.sharing import (
    create_share_link,
    public_address,
    revoke_share_link,
    set_public,
    share_links_of,
    shared_address,
)
from orchestrator.reports.shared_pages import shared_page
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS
from orchestrator.web.sharing_forms import PublicForm, ShareForm


@for_member
def sharing(request: HttpRequest, member: Member) -> HttpResponse:
    context = {
        "projects": [(each, public_address(each)) for each in projects_of(member)],
        "links": share_links_of(member),
    }
    return render(request, "sharing/list.html", context)


@for_member
def public(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Says what becomes visible, and makes a project public or closes it again."""
    project = project_for(member, slug)
    closes = request.method == "POST" and "close" in request.POST
    form = PublicForm(member, request.POST if request.method == "POST" and not closes else None)
    if closes or form.is_valid():
        set_public(member=member, project=project, public=not closes)
        told = "is seen by members of the team alone" if closes else "is public"
        messages.success(request, f"{project.name} {told} from now on.")
        return redirect("project-public", slug)
    if request.method == "POST":
        member.require(Role.MAINTAINER, to="choose who sees a project")
    context = {"project": project, "form": form, "address": public_address(project)}
    return render(request, "sharing/public.html", context, status=form.status)


@never_cache
@for_member
def new_link(request: HttpRequest, member: Member) -> HttpResponse:
    """A link just made is shown in the answer to its own request, and never again."""
    member.require(Role.MEMBER, to="share a page")
    posted = request.POST if request.method == "POST" else None
    address = (posted or request.GET).get("page", "")
    form = ShareForm(member, posted, initial={"page": address})
    shared = shared_page(member, address)
    context: dict[str, Any] = {"form": form, "shared": shared, "address": address}
    if form.is_valid():
        days = form.cleaned_data["days"]
        try:
            made = create_share_link(member=member, shared=shared, days=days)
        except FORM_ERRORS as error:
            form.show_error(error, default="days")
        else:
            context["made"] = made.link
            context["secret"] = shared_address(made)
    return render(request, "sharing/new.html", context, status=form.status)


@for_member
@require_POST
def revoke(request: HttpRequest, member: Member, link_id: UUID) -> HttpResponse:
    revoke_share_link(member=member, link_id=link_id)
    messages.success(request, "The link is revoked: it leads nowhere now.")
    return redirect("sharing")
