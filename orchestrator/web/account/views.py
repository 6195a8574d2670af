"""The account of a user: logging in, the first owner, password, second factor, linked sign-ins."""

import logging
from http import HTTPStatus
from typing import cast

import requests
from allauth.account.decorators import reauthentication_required
from allauth.mfa.models import Authenticator
from allauth.socialaccount.internal.flows.connect import disconnect, validate_disconnect
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from orchestrator.accounts import oidc
from orchestrator.accounts.first_owner import check_setup_link, create_first_owner, has_users
from orchestrator.accounts.members import Member
from orchestrator.accounts.models import User
from orchestrator.core.errors import (
    ConflictError,
    InvalidRequestError,
    PermissionRefusedError,
)
from orchestrator.core.this_machine import is_local_request
from orchestrator.web.account.forms import FirstOwnerForm, PasswordForm
from orchestrator.web.account.login import log_in
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first

log = logging.getLogger(__name__)
#: Steps of OpenID Connect that may fail: no answer, a malformed one, or one with missing fields.
_PROVIDER_FAULTS = (requests.RequestException, KeyError, ValueError)


@never_cache
@login_required
def account(request: HttpRequest) -> HttpResponse:
    """The page is for every logged-in user, with or without a team."""
    user = cast(User, request.user)
    factors = {each.type: each for each in Authenticator.objects.filter(user=user)}
    codes = factors.get(Authenticator.Type.RECOVERY_CODES)
    context = {
        "account": user,
        "app": factors.get(Authenticator.Type.TOTP),
        "codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "links": oidc.load_provider_accounts(user),
        "elsewhere": settings.OIDC_NAME if oidc.is_configured() else "",
    }
    return render(request, "account/account.html", context)


def _ask_unlinking(request: HttpRequest, link_id: int) -> ConfirmationPage:
    oidc.load_provider_account(cast(User, request.user), link_id)
    return ConfirmationPage(
        question="Remove the link of your account?",
        effects=("You then log in with your password. You can link your account again.",),
        button="Remove link",
        back=reverse("account"),
    )


@login_required
@reauthentication_required(app="allauth.socialaccount")
@confirm_first(_ask_unlinking)
def unlink(request: HttpRequest, link_id: int) -> HttpResponse:
    """Remove a link, unless it is the only way to log in."""
    link = oidc.load_provider_account(cast(User, request.user), link_id)
    try:
        validate_disconnect(request, link)
    except ValidationError as error:
        raise ConflictError("set a password first: without the link you cannot log in") from error
    disconnect(request, link)
    return redirect("account")


@sensitive_post_parameters("password", "again")
@never_cache
def setup(request: HttpRequest, secret: str) -> HttpResponse:
    if not is_local_request(request.META.get("REMOTE_ADDR", ""), request.headers):
        raise PermissionRefusedError(
            "open this link on the machine that Pitwall runs on, or through an SSH tunnel to it; "
            "`manage.py create_team` prints an invitation that works from anywhere"
        )
    check_setup_link(secret)
    form = FirstOwnerForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_valid():
        member = _create_owner(form, secret)
        if member is not None:
            messages.success(request, f"Welcome. You are the owner of {member.team.name}.")
            return log_in(request, member.user, to=reverse("overview"))
    status = 422 if form.is_bound else 200
    return render(request, "account/setup.html", {"form": form}, status=status)


class SignIn(LoginView):
    template_name = "account/login.html"
    redirect_authenticated_user = True
    form_class = PasswordForm

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        elsewhere = settings.OIDC_NAME if oidc.is_configured() else ""
        nobody = not has_users()
        return super().get_context_data(elsewhere=elsewhere, nobody=nobody, **kwargs)

    def form_valid(self, form: forms.Form) -> HttpResponse:
        """Ask a user with a second factor for it before the login."""
        user = form.get_user()  # type: ignore[attr-defined]
        return log_in(self.request, user, to=self.get_success_url())


@never_cache
@require_POST
def leave_for_provider(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Return a page that continues to the provider by itself.

    Our content security policy (form-action) forbids a form to redirect to another address.
    """
    _require_provider()
    try:
        adapter = oidc.VerifyingAdapter(request, provider_id)
        answer = OAuth2LoginView.adapter_view(adapter)(request)
    except _PROVIDER_FAULTS as error:
        return _answer_provider_failure(request, error)
    if answer.status_code != HTTPStatus.FOUND:
        return answer
    context = {"address": answer.headers["Location"], "name": settings.OIDC_NAME}
    return render(request, "account/leave.html", context)


@never_cache
def provider_callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    _require_provider()
    try:
        adapter = oidc.VerifyingAdapter(request, provider_id)
        return OAuth2CallbackView.adapter_view(adapter)(request)
    except _PROVIDER_FAULTS as error:
        return _answer_provider_failure(request, error)


def sign_in_cancelled(request: HttpRequest) -> HttpResponse:
    messages.info(
        request, f"Sign-in failed at {settings.OIDC_NAME}. Try again or use another method."
    )
    return redirect("account" if request.user.is_authenticated else "login")


def _create_owner(form: FirstOwnerForm, secret: str) -> Member | None:
    """Return the owner; None if the form has errors."""
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


def _require_provider() -> None:
    if not oidc.is_configured():
        raise Http404


def _answer_provider_failure(request: HttpRequest, error: Exception) -> HttpResponse:
    """Keep the provider's message out of page and log: it may contain codes and tokens."""
    log.warning("sign-in at %s failed: %s", settings.OIDC_SERVER_URL, type(error).__name__)
    context = {"unreachable": True, "name": settings.OIDC_NAME}
    status = HTTPStatus.BAD_GATEWAY
    return render(request, "socialaccount/authentication_error.html", context, status=status)
