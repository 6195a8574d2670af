"""One's own account: password, second factor, and the sign-in elsewhere."""

from typing import cast

from allauth.account.decorators import reauthentication_required
from allauth.mfa.models import Authenticator
from allauth.socialaccount.internal.flows.connect import disconnect, validate_disconnect
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from orchestrator.accounts import oidc
from orchestrator.accounts.models import User
from orchestrator.core.errors import ConflictError, NotFoundError


@never_cache
@login_required
def account(request: HttpRequest) -> HttpResponse:
    """For everybody who is logged in, with a team or without."""
    user = cast(User, request.user)
    factors = {each.type: each for each in Authenticator.objects.filter(user=user)}
    codes = factors.get(Authenticator.Type.RECOVERY_CODES)
    context = {
        "account": user,
        "app": factors.get(Authenticator.Type.TOTP),
        "codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "links": oidc.links_of(user),
        "elsewhere": settings.OIDC_NAME if oidc.is_configured() else "",
    }
    return render(request, "accounts/account.html", context)


@login_required
@require_POST
@reauthentication_required(app="allauth.socialaccount")
def unlink(request: HttpRequest, link_id: int) -> HttpResponse:
    """Takes a link away, unless it is the only way in."""
    link = oidc.links_of(cast(User, request.user)).filter(pk=link_id).first()
    if link is None:
        raise NotFoundError("there is no such link in your account")
    try:
        validate_disconnect(request, link)
    except ValidationError as error:
        raise ConflictError("set a password first: without the link you cannot log in") from error
    disconnect(request, link)
    return redirect("account")
