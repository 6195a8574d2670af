"""The team's settings: who is in it, and the tokens of its machines."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import members_of, tokens_of
from orchestrator.accounts.services import create_token, revoke_token
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS, TokenForm


@never_cache
@for_member
def settings(request: HttpRequest, member: Member) -> HttpResponse:
    """A token just made is shown in the answer to its own request, and never again."""
    form = TokenForm(member, request.POST if request.method == "POST" else None)
    made = None
    if form.is_valid():
        try:
            made = create_token(member=member, name=form.cleaned_data["name"])
            form = TokenForm(member)
        except FORM_ERRORS as error:
            form.show_error(error)
    context = {
        "form": form,
        "made": made,
        "tokens": tokens_of(member),
        "members": members_of(member),
    }
    return render(request, "settings.html", context, status=form.status)


@for_member
@require_POST
def revoke(request: HttpRequest, member: Member, token_id: UUID) -> HttpResponse:
    revoke_token(member=member, token_id=token_id)
    return redirect("settings")
