"""Members and invitations of the team, and the page of an invitation link."""

from typing import cast
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from orchestrator.accounts.invitation_mail import build_invitation_link, send_invitation
from orchestrator.accounts.invitations import (
    NewInvitation,
    accept_as_new_user,
    accept_invitation,
    create_invitation,
    load_invitation,
    load_invitations,
    load_open_invitation,
    withdraw_invitation,
)
from orchestrator.accounts.members import Member
from orchestrator.accounts.memberships import change_role, remove_member
from orchestrator.accounts.models import Role, User
from orchestrator.accounts.selectors import load_members, load_membership
from orchestrator.core.errors import InvalidRequestError
from orchestrator.web.access import CHOSEN_TEAM, for_member
from orchestrator.web.account.forms import NewAccountForm
from orchestrator.web.account.login import log_in
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.team.forms import InvitationForm, list_grantable_roles


@for_member
def members(request: HttpRequest, member: Member) -> HttpResponse:
    return _render_members_page(request, member, InvitationForm(member))


@never_cache
@for_member
@require_POST
def invite(request: HttpRequest, member: Member) -> HttpResponse:
    """Invite somebody. The link is only in the response to the request that created it."""
    form = InvitationForm(member, request.POST)
    new = form.create(lambda: create_invitation(member=member, **form.cleaned_data))
    if new is None:
        return _render_members_page(request, member, form)
    sent = send_invitation(member=member, new=new)
    return _render_members_page(request, member, InvitationForm(member), new=new, sent=sent)


def _ask_withdrawal(request: HttpRequest, member: Member, invitation_id: UUID) -> ConfirmationPage:
    return ConfirmationPage(
        question=f"Withdraw the invitation for {load_open_invitation(member, invitation_id)}?",
        effects=("Its link no longer works.",),
        button="Withdraw invitation",
        back=reverse("members"),
    )


@for_member
@confirm_first(_ask_withdrawal)
def withdraw(request: HttpRequest, member: Member, invitation_id: UUID) -> HttpResponse:
    withdraw_invitation(member=member, invitation_id=invitation_id)
    messages.success(request, "The invitation was withdrawn. Its link no longer works.")
    return redirect("members")


@for_member
@require_POST
def role(request: HttpRequest, member: Member, username: str) -> HttpResponse:
    changed = change_role(member=member, username=username, role=request.POST.get("role", ""))
    messages.success(request, f"The role of {username} is {changed.role}.")
    return redirect("members")


def _ask_removal(request: HttpRequest, member: Member, username: str) -> ConfirmationPage:
    name = load_membership(member, username).user.get_username()
    return ConfirmationPage(
        question=f"Remove {name} from {member.team.name}?",
        effects=(
            f"{name} no longer sees anything of the team, and their API tokens of it are revoked.",
            "Runs, schedules and reports that they created remain.",
        ),
        button="Remove member",
        back=reverse("members"),
    )


@for_member
@confirm_first(_ask_removal)
def remove(request: HttpRequest, member: Member, username: str) -> HttpResponse:
    remove_member(member=member, username=username)
    messages.success(request, f"{username} is no longer in the team; their tokens are revoked.")
    return redirect("members")


@sensitive_post_parameters("password", "again")
@never_cache
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    record = load_invitation(secret)
    form = NewAccountForm(request.POST if request.method == "POST" else None, label_suffix="")
    if request.method == "POST":
        member = _join_team(request, form, secret)
        if member is not None:
            answer = _welcome_member(request, member)
            request.session[CHOSEN_TEAM] = member.team.slug
            messages.success(request, f"Welcome to {member.team.name}.")
            return answer
    context = {"invitation": record, "form": form, "here": request.path}
    status = 422 if form.is_bound else 200
    return render(request, "team/invitation.html", context, status=status)


def _render_members_page(
    request: HttpRequest,
    member: Member,
    form: InvitationForm,
    *,
    new: NewInvitation | None = None,
    sent: bool = False,
) -> HttpResponse:
    given = list_grantable_roles(member)
    known = {value for value, _ in given}
    context = {
        "form": form,
        "new": new,
        "link": build_invitation_link(new) if new else "",
        "sent": sent,
        "rows": [(each, each.role in known) for each in load_members(member)],
        "roles": given,
        "invitations": load_invitations(member) if member.has(Role.MAINTAINER) else [],
    }
    return render(request, "team/members.html", context, status=form.status)


def _join_team(request: HttpRequest, form: NewAccountForm, secret: str) -> Member | None:
    """Return the new member; None if the form has errors."""
    if request.user.is_authenticated:
        return accept_invitation(user=cast(User, request.user), secret=secret)
    if not form.is_valid():
        return None
    data = form.cleaned_data
    try:
        member = accept_as_new_user(
            secret=secret, username=data["username"], password=data["password"]
        )
    except InvalidRequestError as error:
        form.add_error(error.field, str(error))
        return None
    return member


def _welcome_member(request: HttpRequest, member: Member) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect("overview")
    return log_in(request, member.user, to=reverse("overview"))
