"""Long polling: the answer is delayed until there is news, without a thread that waits.

The web server passes each request a `Wait` (docs/decisions/0044). Other servers, such as Django's
own, pass none: then the answer is immediate, as it is if too many requests wait already.
"""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpResponse

from orchestrator.api.auth import CallerRequest
from orchestrator.core.waits import wait_in

#: The delay that a client is asked for if the server cannot wait.
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
    """Return True if the request must be handled again later: then return
    `build_parked_response()`.

    Return False when `look` returns a new state or one of `ended`, when the time is over, and when
    no more requests may wait. In the last case `headers`, those of the answer, get a Retry-After.
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
    wait.parking_requested = True
    return True


def build_parked_response() -> HttpResponse:
    """Return a placeholder answer, never sent: the web server sets the request aside."""
    return HttpResponse(status=HTTPStatus.NO_CONTENT)
