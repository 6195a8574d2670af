"""Long polling: an answer that is given when there is something new, without a thread meanwhile.

The web server hands each request a `Wait` (docs/decisions/0044). Another server, as Django's own,
hands none: a request is then answered at once, as it is where too many wait already.
"""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpResponse

from orchestrator.api.auth import CallerRequest
from orchestrator.core.waits import wait_in

#: What a client is asked to wait itself where the server cannot wait for it.
RETRY_AFTER_S = 5


def must_wait(
    request: CallerRequest,
    headers: dict[str, str],
    *,
    topic: str,
    look: Callable[[], str],
    wait_s: float,
    ended: frozenset[str],
) -> bool:
    """True where the request is to be handled again later: return `parked()` then.

    False once `look` returns another state than at first or one of `ended`, once the time is over,
    and where nobody more may wait: `headers`, those of the answer, have a Retry-After then.
    """
    wait = wait_in(request.META)
    if wait is None:
        headers["Retry-After"] = str(RETRY_AFTER_S)
        look()
        return False
    wait.begin(topic, wait_s)
    now = look()
    first = wait.seen = wait.seen or now
    if now != first or now in ended or wait.is_over():
        return False
    caller = request.auth
    if not wait.book.admit(wait, token=str(caller.token.pk), team=str(caller.member.team.pk)):
        headers["Retry-After"] = str(RETRY_AFTER_S)
        return False
    wait.asked_to_park = True
    return True


def parked() -> HttpResponse:
    """The answer that nobody gets: the web server sets the request aside."""
    return HttpResponse(status=HTTPStatus.NO_CONTENT)
