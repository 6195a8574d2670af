"""Who is in the team, and who is invited."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from orchestrator.accounts.invitation_mail import link_of, send_invitation
from orchestrator.accounts.invitations import (
    NewInvitation,
    create_invitation,
    invitations_of,
    withdraw_invitation,
)
from orchestrator.accounts.members import Member
from orchestrator.accounts.memberships import change_role, remove_member
from orchestrator.accounts.models import Role
from orchestrator.accounts.selectors import members_of
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS
from orchestrator.web.team_forms import InvitationForm, roles_to_give


@for_member
def members(request: HttpRequest, member: Member) -> HttpResponse:
    return _page(request, member, InvitationForm(member))


@never_cache
@for_member
@require_POST
def invite(request: HttpRequest, member: Member) -> HttpResponse:
    """The link is shown in the answer to its own request, and never again."""
    form = InvitationForm(member, request.POST)
    new = None
    if form.is_valid():
        try:
            new = create_invitation(member=member, **form.cleaned_data)
        except FORM_ERRORS as error:
            form.show_error(error)
    if new is None:
        return _page(request, member, form)
    sent = send_invitation(member=member, new=new)
    return _page(request, member, InvitationForm(member), new=new, sent=sent)


@for_member
@require_POST
def withdraw(request: HttpRequest, member: Member, invitation_id: UUID) -> HttpResponse:
    withdraw_invitation(member=member, invitation_id=invitation_id)
    messages.success(request, "The invitation is withdrawn: its link leads nowhere now.")
    return redirect("members")


@for_member
@require_POST
def role(request: HttpRequest, member: Member, username: str) -> HttpResponse:
    changed = change_role(member=member, username=username, role=request.POST.get("role", ""))
    messages.success(request, f"The role of {username} is {changed.role}.")
    return redirect("members")


@for_member
@require_POST
def remove(request: HttpRequest, member: Member, username: str) -> HttpResponse:
    remove_member(member=member, username=username)
    messages.success(request, f"{username} is no longer in the team; their tokens are revoked.")
    return redirect("members")


def _page(
    request: HttpRequest,
    member: Member,
    form: InvitationForm,
    *,
    new: NewInvitation | None = None,
    sent: bool = False,
) -> HttpResponse:
    given = roles_to_give(member)
    known = {value for value, _ in given}
    context = {
        "form": form,
        "new": new,
        "link": link_of(new) if new else "",
        "sent": sent,
        "rows": [(each, each.role in known) for each in members_of(member)],
        "roles": given,
        "invitations": invitations_of(member) if member.has(Role.MAINTAINER) else [],
    }
    return render(request, "team/members.html", context, status=form.status)
