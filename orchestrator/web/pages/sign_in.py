"""Logging in: with a password, then perhaps a code; or at the provider that is configured."""

import logging
from http import HTTPStatus

import requests
from allauth.account.adapter import get_adapter
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from orchestrator.accounts import oidc
from orchestrator.accounts.first_owner import has_users
from orchestrator.web.logging_in import log_in

log = logging.getLogger(__name__)

#: Where OpenID Connect's requests fail: no answer, a bad one, or one without what it must have.
_PROVIDER_FAULTS = (requests.RequestException, KeyError, ValueError)


class PasswordForm(AuthenticationForm):
    """Failed tries are counted, by user name and by address."""

    def clean(self) -> dict[str, object]:
        username, password = (self.cleaned_data.get(name) for name in ("username", "password"))
        if username is None or not password:
            return self.cleaned_data
        self.user_cache = get_adapter().authenticate(
            self.request, username=username, password=password
        )
        if self.user_cache is None:
            raise self.get_invalid_login_error()
        self.confirm_login_allowed(self.user_cache)
        return self.cleaned_data


class SignIn(LoginView):
    template_name = "accounts/login.html"
    redirect_authenticated_user = True
    form_class = PasswordForm

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        elsewhere = settings.OIDC_NAME if oidc.is_configured() else ""
        nobody = not has_users()
        return super().get_context_data(elsewhere=elsewhere, nobody=nobody, **kwargs)

    def form_valid(self, form: forms.Form) -> HttpResponse:
        """Who has a second factor is asked for it before they are logged in."""
        user = form.get_user()  # type: ignore[attr-defined]
        return log_in(self.request, user, to=self.get_success_url())


@never_cache
@require_POST
def leave(request: HttpRequest, provider_id: str) -> HttpResponse:
    """A page that goes on to the provider by itself.

    A form must not lead to another address, says our policy (form-action), so no redirect here.
    """
    _must_be_configured()
    try:
        adapter = oidc.VerifyingAdapter(request, provider_id)
        answer = OAuth2LoginView.adapter_view(adapter)(request)
    except _PROVIDER_FAULTS as error:
        return _failed(request, error)
    if answer.status_code != HTTPStatus.FOUND:
        return answer
    context = {"address": answer.headers["Location"], "name": settings.OIDC_NAME}
    return render(request, "accounts/leave.html", context)


@never_cache
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    _must_be_configured()
    try:
        adapter = oidc.VerifyingAdapter(request, provider_id)
        return OAuth2CallbackView.adapter_view(adapter)(request)
    except _PROVIDER_FAULTS as error:
        return _failed(request, error)


def cancelled(request: HttpRequest) -> HttpResponse:
    messages.info(request, f"Nobody signed in at {settings.OIDC_NAME}. Try again, or another way.")
    return redirect("account" if request.user.is_authenticated else "login")


def _must_be_configured() -> None:
    if not oidc.is_configured():
        raise Http404


def _failed(request: HttpRequest, error: Exception) -> HttpResponse:
    """What the provider said stays out of page and log: it may hold codes and tokens."""
    log.warning("sign-in at %s failed: %s", settings.OIDC_SERVER_URL, type(error).__name__)
    context = {"unreachable": True, "name": settings.OIDC_NAME}
    status = HTTPStatus.BAD_GATEWAY
    return render(request, "socialaccount/authentication_error.html", context, status=status)
