"""Long polling: an answer that is given when there is something new to say."""

import time
from collections.abc import Callable

LOOK_S = 0.5


def wait_for_change(
    look: Callable[[], str],
    *,
    wait_s: float,
    ended: frozenset[str],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Returns once `look` says something else than at first or one of `ended`, or after `wait_s`.

    Each waiting request holds a thread of the web server, so the caller bounds `wait_s`.
    """
    first = look()
    until = clock() + wait_s
    now = first
    while now == first and now not in ended and clock() < until:
        sleep(min(LOOK_S, max(0.0, until - clock())))
        now = look()
