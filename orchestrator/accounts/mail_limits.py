"""The limit of e-mails per team and hour: the server must not send spam."""

import time

from django.conf import settings
from django.core.cache import cache

from orchestrator.accounts.models import Team
from orchestrator.core.errors import ConflictError

_HOUR_S = 3_600


def reserve_mails(team: Team, count: int) -> None:
    """Count e-mails of a team before they are sent.

    ConflictError if they would exceed PITWALL_EMAILS_AN_HOUR. Processes that count simultaneously
    may count as one; the limit need not be exact.
    """
    most = settings.EMAILS_AN_HOUR
    key = f"mails:{team.pk}:{int(time.time()) // _HOUR_S}"
    cache.add(key, 0, timeout=_HOUR_S)
    sent = cache.get(key, 0)
    if sent + count > most:
        raise ConflictError(
            f"{team.name} may send {most} e-mails per hour and has sent {sent}: wait for the next "
            "hour (an invitation without an address is a link that you pass on yourself)"
        )
    cache.set(key, sent + count, timeout=_HOUR_S)
