"""Logins and failed ones: a log line, a metric, and the audit logs of the user's teams.

Refused API tokens are logged and counted too.
"""

import logging
import time
from threading import Lock
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.signals import user_logged_in
from allauth.mfa.signals import authentication_failed
from django.core.cache import cache
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from orchestrator.accounts.known_devices import remember_device
from orchestrator.accounts.models import User
from orchestrator.accounts.services import record_own_audit, record_system_audit
from orchestrator.core.counting import count

logger = logging.getLogger(__name__)

#: Attackers must not fill the audit log: one failure of a kind per user is recorded in this time.
_NOTED_AGAIN_S = 300
_ACTIONS = {
    "wrong_password": "login.failed",
    "wrong_code": "second-factor.failed",
    "too_many": "login.refused",
}


def log_failed_login(request: HttpRequest, username: str, why: str) -> None:
    """Record a failure; `why` is a key of _ACTIONS.

    An unknown username is not logged: it may be a password.
    """
    user = User.objects.filter(username=username).first()
    count("pitwall_logins_total", outcome=why)
    logger.warning(
        "a login failed (%s): %s from %s",
        why.replace("_", " "),
        f"user {user.get_username()}" if user else "an unknown username",
        get_adapter().get_client_ip(request),
    )
    if user is not None and cache.add(f"login-noted:{user.pk}:{why}", True, _NOTED_AGAIN_S):
        for membership in user.memberships.select_related("team"):
            record_system_audit(
                team=membership.team, action=_ACTIONS[why], subject=user.get_username()
            )


class _LineLimit:
    """Limits lines per window of 60 s in this process; the next line reports the omitted number."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._since, self._asked = -60.0, 0

    def count_suppressed(self) -> int | None:
        """Return how many lines were omitted before this one; None if this one is omitted too."""
        with self._lock:
            now = time.monotonic()
            if now - self._since < 60:
                self._asked += 1
                return 0 if self._asked <= self._most else None
            suppressed = max(0, self._asked - self._most)
            self._since, self._asked = now, 1
            return suppressed


#: Wrong tokens can be sent without a username, as fast as requests are answered.
token_lines = _LineLimit(most=20)


def log_wrong_token(request: HttpRequest, why: str) -> None:
    """Record a refused API token; `why` is the reason, without the token."""
    count("pitwall_logins_total", outcome="wrong_token")
    suppressed = token_lines.count_suppressed()
    if suppressed is not None:
        address = get_adapter().get_client_ip(request)
        more = f" ({suppressed} such lines before it were left out)" if suppressed else ""
        logger.warning("an API token was refused, from %s: %s%s", address, why, more)


@receiver(user_logged_in)
def _record_login(request: HttpRequest, response: HttpResponse, user: User, **_: Any) -> None:
    """Record a login after the password or the provider, and the second factor if required."""
    count("pitwall_logins_total", outcome="success")
    logger.info(
        "user %s logged in from %s", user.get_username(), get_adapter().get_client_ip(request)
    )
    record_own_audit(user=user, action="login.succeeded")
    remember_device(request, response, user)


@receiver(authentication_failed)
def _record_failed_code(request: HttpRequest, user: User, **_: Any) -> None:
    log_failed_login(request, user.get_username(), "wrong_code")
