"""The first user and team of an instance that has none: the page of the link that was printed."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from orchestrator.accounts.first_owner import check_setup_link, create_first_owner
from orchestrator.accounts.members import Member
from orchestrator.core.errors import InvalidRequestError, PermissionRefusedError
from orchestrator.core.this_machine import is_of_this_machine
from orchestrator.web.logging_in import log_in
from orchestrator.web.team_forms import FirstOwnerForm


@sensitive_post_parameters("password", "again")
@never_cache
def setup(request: HttpRequest, secret: str) -> HttpResponse:
    if not is_of_this_machine(request.META.get("REMOTE_ADDR", ""), request.headers):
        raise PermissionRefusedError(
            "open this link on the machine that Pitwall runs on, or through an SSH tunnel to it; "
            "`manage.py create_team` prints an invitation that works from anywhere"
        )
    check_setup_link(secret)
    form = FirstOwnerForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_valid():
        member = _created(form, secret)
        if member is not None:
            messages.success(request, f"Welcome. You are the owner of {member.team.name}.")
            return log_in(request, member.user, to=reverse("overview"))
    status = 422 if form.is_bound else 200
    return render(request, "accounts/setup.html", {"form": form}, status=status)


def _created(form: FirstOwnerForm, secret: str) -> Member | None:
    """The owner; None where the form has to be looked at."""
    data = form.cleaned_data
    try:
        return create_first_owner(
            secret=secret,
            username=data["username"],
            password=data["password"],
            team=data["team"],
        )
    except InvalidRequestError as error:
        form.add_error(error.field, str(error))
        return None
