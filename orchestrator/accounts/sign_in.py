"""Adapters of django-allauth: messages, no sign-up, sealed secrets, an audit log."""

import re
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from orchestrator.accounts.known_devices import read_device_id
from orchestrator.accounts.models import User
from orchestrator.accounts.services import record_own_audit
from orchestrator.accounts.sign_in_log import log_failed_login
from orchestrator.accounts.vault import SECOND_FACTORS, seal_text, unseal_text
from orchestrator.core.errors import PermissionRefusedError

#: The messages for events of allauth; other events have none.
_SAID = {
    "account/messages/password_changed.txt": "Your password was changed. You stay logged in here; "
    "other browsers are logged out.",
    "account/messages/password_set.txt": "Your password was set.",
    "mfa/messages/totp_activated.txt": "The second factor is on: each login now needs a code of "
    "your app.",
    "mfa/messages/totp_deactivated.txt": "The second factor is off.",
    "mfa/messages/recovery_codes_generated.txt": "New recovery codes were created. Store them "
    "where you can find them without your phone.",
    "socialaccount/messages/account_connected.txt": "The sign-in was linked to your account.",
    "socialaccount/messages/account_connected_other.txt": "This sign-in is already linked to "
    "another account of Pitwall; remove it there first.",
    "socialaccount/messages/account_disconnected.txt": "The link was removed.",
}
#: allauth reports these events to users by mail; Pitwall adds them to the audit logs of their
#: teams.
_AUDITED = {
    "account/email/password_changed": "password.changed",
    "account/email/password_set": "password.set",
    "mfa/email/totp_activated": "second-factor.on",
    "mfa/email/totp_deactivated": "second-factor.off",
    "mfa/email/recovery_codes_generated": "recovery-codes.made",
}


class AccountAdapter(DefaultAccountAdapter):
    """Users come by invitation or by the provider: there is no page to sign up."""

    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "too_many_login_attempts": "Too many failed attempts. Wait five minutes and try again.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def respond_user_inactive(self, request: HttpRequest, user: Any) -> HttpResponse:
        raise PermissionRefusedError(
            f"the account {user.get_username()} is deactivated; ask an owner of your team"
        )

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError:
            log_failed_login(request, credentials.get("username", ""), "too_many")
            raise

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        log_failed_login(request, credentials.get("username", ""), "wrong_password")

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Return a separate cache key for attempts from a known device of the user."""
        key = str(super()._get_login_attempts_cache_key(request, **credentials))
        device = read_device_id(request, credentials.get("username", ""))
        return f"{key}:{device}" if device else key

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account")

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str | None = None,
        message_context: dict[str, Any] | None = None,
        extra_tags: str = "",
        message: str | None = None,
    ) -> None:
        text = message or _SAID.get(message_template or "")
        if text:
            messages.add_message(request, level, text, extra_tags=extra_tags)

    def send_notification_mail(
        self,
        template_prefix: str,
        user: Any,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        action = _AUDITED.get(template_prefix)
        if action and isinstance(user, User):
            record_own_audit(user=user, action=action)


class SecondFactorAdapter(DefaultMFAAdapter):
    """Seals TOTP secrets and the seeds of recovery codes."""

    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": "The code is wrong. Codes change every 30 seconds, and each is valid "
        "only once.",
    }

    def encrypt(self, text: str) -> str:
        return seal_text(text, SECOND_FACTORS)

    def decrypt(self, encrypted_text: str) -> str:
        return unseal_text(encrypted_text, SECOND_FACTORS)

    def get_totp_label(self, user: Any) -> str:
        return user.get_username()

    def build_totp_svg(self, url: str) -> str:
        """Return the QR code as inline SVG: the content security policy forbids data: images."""
        svg = super().build_totp_svg(url)
        inner = svg[svg.index("<svg") :]
        return re.sub(
            r'(<svg\b[^>]*?) width="[^"]*" height="[^"]*"', r"\1", inner, count=1
        ).replace(
            "<svg", '<svg class="qr" role="img" aria-label="QR code for your authenticator app"', 1
        )
