"""Where the link of an invitation leads: to join as who one is, or to make an account first."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from orchestrator.accounts.invitations import (
    accept_as_new_user,
    accept_invitation,
    invitation_for,
)
from orchestrator.accounts.members import Member
from orchestrator.accounts.models import User
from orchestrator.core.errors import InvalidRequestError
from orchestrator.web.access import CHOSEN_TEAM
from orchestrator.web.logging_in import log_in
from orchestrator.web.team_forms import NewAccountForm


@sensitive_post_parameters("password", "again")
@never_cache
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    found = invitation_for(secret)
    form = NewAccountForm(request.POST if request.method == "POST" else None, label_suffix="")
    if request.method == "POST":
        member = _joined(request, form, secret)
        if member is not None:
            answer = _answer(request, member)
            request.session[CHOSEN_TEAM] = member.team.slug
            messages.success(request, f"Welcome to {member.team.name}.")
            return answer
    context = {"invitation": found, "form": form, "here": request.path}
    status = 422 if form.is_bound else 200
    return render(request, "team/invitation.html", context, status=status)


def _joined(request: HttpRequest, form: NewAccountForm, secret: str) -> Member | None:
    """Who is in the team now; None where the form has to be looked at."""
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


def _answer(request: HttpRequest, member: Member) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect("overview")
    return log_in(request, member.user, to=reverse("overview"))
