"""Log-ins and failed ones: a line in the log, a count, and the audit logs of the user's teams.

Refused API tokens are logged and counted with them.
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

#: A guesser must not fill the audit log: of a user one failure of a kind is noted in this time.
_NOTED_AGAIN_S = 300
_ACTIONS = {
    "wrong_password": "log-in.failed",
    "wrong_code": "second-factor.failed",
    "too_many": "log-in.refused",
}


def note_failed_login(request: HttpRequest, username: str, why: str) -> None:
    """`why` is one of _ACTIONS. A name that nobody has is not repeated: it may be a password."""
    user = User.objects.filter(username=username).first()
    count("pitwall_logins_total", outcome=why)
    logger.warning(
        "a log-in failed (%s): %s from %s",
        why.replace("_", " "),
        f"user {user.get_username()}" if user else "an unknown user name",
        get_adapter().get_client_ip(request),
    )
    if user is not None and cache.add(f"login-noted:{user.pk}:{why}", True, _NOTED_AGAIN_S):
        for membership in user.memberships.select_related("team"):
            record_system_audit(
                team=membership.team, action=_ACTIONS[why], subject=user.get_username()
            )


class _LineLimit:
    """At most so many lines in a window of 60 s of this process; the next one says how many were
    left out."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._since, self._asked = -60.0, 0

    def left_out(self) -> int | None:
        """How many were left out before this line; None where this one is left out as well."""
        with self._lock:
            now = time.monotonic()
            if now - self._since < 60:
                self._asked += 1
                return 0 if self._asked <= self._most else None
            left_out = max(0, self._asked - self._most)
            self._since, self._asked = now, 1
            return left_out


#: Nobody has to know a user's name to send wrong tokens, as fast as requests are answered.
token_lines = _LineLimit(most=20)


def note_wrong_token(request: HttpRequest, why: str) -> None:
    """`why` says what is wrong with an API token, without it."""
    count("pitwall_logins_total", outcome="wrong_token")
    left_out = token_lines.left_out()
    if left_out is not None:
        address = get_adapter().get_client_ip(request)
        more = f" ({left_out} such lines before it were left out)" if left_out else ""
        logger.warning("an API token was refused, from %s: %s%s", address, why, more)


@receiver(user_logged_in)
def _logged_in(request: HttpRequest, response: HttpResponse, user: User, **_: Any) -> None:
    """After a password or a sign-in elsewhere, and the code where one is asked for."""
    count("pitwall_logins_total", outcome="success")
    logger.info(
        "user %s logged in from %s", user.get_username(), get_adapter().get_client_ip(request)
    )
    record_own_audit(user=user, action="log-in.succeeded")
    remember_device(request, response, user)


@receiver(authentication_failed)
def _code_failed(request: HttpRequest, user: User, **_: Any) -> None:
    note_failed_login(request, user.get_username(), "wrong_code")
