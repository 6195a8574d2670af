"""Log-ins and failed ones: a line in the log, a count, and the audit logs of the user's teams."""

import logging
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
