"""Sign-in with an OpenID Connect provider, which the environment configures.

django-allauth implements the protocol. Pitwall adds checks: there must be an ID token, its
signature is checked even if TLS would suffice, and it has the same subject as the user info.
"""

from typing import Any

import requests
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from orchestrator.accounts.models import User
from orchestrator.accounts.proven_addresses import has_proven, load_verified_users, reset_ways_in
from orchestrator.accounts.selectors import load_users_by_email
from orchestrator.accounts.services import record_own_audit
from orchestrator.core.errors import ConflictError, NotFoundError

#: There is one provider; links of users to it are stored under this name.
PROVIDER = "oidc"


def is_configured() -> bool:
    return bool(settings.OIDC_SERVER_URL and settings.OIDC_CLIENT_ID)


def load_provider_accounts(user: User) -> QuerySet[SocialAccount]:
    """Return the accounts at the provider that a user may sign in with."""
    return SocialAccount.objects.filter(user=user, provider=PROVIDER).order_by("pk")


def load_provider_account(user: User, account_id: int) -> SocialAccount:
    account = load_provider_accounts(user).filter(pk=account_id).first()
    if account is None:
        raise NotFoundError("this sign-in is not linked to your account; reload the page")
    return account


class VerifyingAdapter(OpenIDConnectOAuth2Adapter):
    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        path = reverse("openid_connect_callback", kwargs={"provider_id": self.provider_id})
        return settings.BASE_URL + path

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any
    ) -> SocialLogin:
        if not kwargs["response"].get("id_token"):
            raise OAuth2Error("the provider sent no ID token")
        login = super().complete_login(request, app, token, **kwargs)
        data = login.account.extra_data
        if data["userinfo"].get("sub") != data["id_token"].get("sub"):
            raise OAuth2Error("the user info is not that of the ID token")
        return login

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        try:
            return jwtkit.verify_and_decode(
                credential=id_token,
                keys_url=self.openid_config["jwks_uri"],
                issuer=self.openid_config["issuer"],
                audience=app.client_id,
                lookup_kid=jwtkit.lookup_kid_jwk,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise OAuth2Error("the ID token or its key is malformed") from error


class Provider(OpenIDConnectProvider):
    oauth2_adapter_class = VerifyingAdapter
    pkce_enabled_default = True


class SignInElsewhere(DefaultSocialAccountAdapter):
    """Decides who may sign in with the provider, and as which user."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Return the provider of the environment: no client secret is read from the database."""
        app = SocialApp(
            provider="openid_connect",
            provider_id=PROVIDER,
            name=settings.OIDC_NAME,
            client_id=settings.OIDC_CLIENT_ID,
            secret=settings.OIDC_CLIENT_SECRET,
            settings={"server_url": settings.OIDC_SERVER_URL},
        )
        wanted = provider in {None, app.provider, PROVIDER}
        return [app] if is_configured() and wanted else []

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> Provider:
        return Provider(request, app=self.get_app(request, provider, client_id))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Drop the access token, and e-mail addresses that the provider has not verified.

        The session of a user who still needs a second factor must not contain the token.
        """
        sociallogin.token = None
        if sociallogin.state.get("process") == AuthProcess.LOGIN:
            self._make_proven(request, sociallogin)
        verified = [each for each in sociallogin.email_addresses if each.verified is True]
        sociallogin.email_addresses = verified
        if sociallogin.user is not None and sociallogin.user.pk is None:
            sociallogin.user.email = verified[0].email if verified else ""

    def _make_proven(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Prove the address before the first login with it: remove all other ways into the
        account."""
        address = getattr(sociallogin, "pitwall_address", "")
        if address and sociallogin.user is not None and not has_proven(sociallogin.user, address):
            removed = reset_ways_in(sociallogin.user, address)
            messages.warning(
                request,
                "This sign-in was linked to your account by its e-mail address, which had not been "
                f"verified before. To prevent access by others, {removed} were removed.",
            )

    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        """Return the user with a verified address of the sign-in.

        ConflictError if several users have the address and not exactly one of them has proven it.
        """
        if not settings.OIDC_LINK_BY_EMAIL:
            return None
        for address in sociallogin.email_addresses:
            users = load_users_by_email(address.email) if address.verified is True else []
            candidates = users if len(users) == 1 else load_verified_users(address.email)
            if len(candidates) == 1:
                sociallogin.pitwall_address = address.email
                return candidates[0], address.email
            if users:
                raise ConflictError(
                    f"several accounts here have the address {address.email}: log in with your "
                    "password and link this sign-in on your account page, or ask your "
                    "administrator"
                )
        return None

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Refuse sign-up with the address of an existing user, who must log in instead."""
        taken = any(load_users_by_email(each.email) for each in sociallogin.email_addresses)
        return settings.OIDC_NEW_ACCOUNTS and not taken

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: Any) -> str:
        return reverse("account")

    def send_notification_mail(
        self, template_prefix: str, user: Any, *args: Any, **kwargs: Any
    ) -> None:
        linked = template_prefix.endswith("/account_connected")
        record_own_audit(user=user, action="sign-in.linked" if linked else "sign-in.unlinked")

    def get_requests_session(self) -> requests.Session:
        """Return a session that follows no redirects: the client secret goes to the configured
        address."""
        session = super().get_requests_session()
        session.max_redirects = 0
        return session
