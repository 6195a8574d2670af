"""The team's settings: the tokens of its machines, and which team is shown."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.memberships import leave_team
from orchestrator.accounts.selectors import member_for_user, tokens_of
from orchestrator.accounts.services import create_token, revoke_token
from orchestrator.web.access import CHOSEN_TEAM, for_member
from orchestrator.web.forms import FORM_ERRORS
from orchestrator.web.team_forms import TokenForm


@never_cache
@for_member
def settings(request: HttpRequest, member: Member) -> HttpResponse:
    """A token just made is shown in the answer to its own request, and never again."""
    form = TokenForm(member, request.POST if request.method == "POST" else None)
    made = None
    if form.is_valid():
        try:
            made = create_token(member=member, **form.wanted())
            form = TokenForm(member)
        except FORM_ERRORS as error:
            form.show_error(error)
    context = {"form": form, "made": made, "tokens": tokens_of(member)}
    return render(request, "settings.html", context, status=form.status)


@for_member
@require_POST
def revoke(request: HttpRequest, member: Member, token_id: UUID) -> HttpResponse:
    revoke_token(member=member, token_id=token_id)
    return redirect("settings")


@for_member
@require_POST
def switch(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows another of the user's teams from now on, in this session."""
    chosen = member_for_user(member.user, request.POST.get("team", "") or "-")
    request.session[CHOSEN_TEAM] = chosen.team.slug
    return redirect("overview")


@for_member
@require_POST
def leave(request: HttpRequest, member: Member) -> HttpResponse:
    leave_team(member=member)
    request.session.pop(CHOSEN_TEAM, None)
    messages.success(request, f"You have left {member.team.name}.")
    return redirect("overview")
