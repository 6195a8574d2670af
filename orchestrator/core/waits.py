"""Requests that wait for a change without a thread: their topics and limits.

The web server has one `WaitBook` per process. A request that has to wait is handled once and then
parked. It is handled again when its topic changes or its time is over.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

#: Key of a request's `Wait` in its WSGI environment.
ENVIRON_KEY = "pitwall.wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimits:
    """How many requests may wait in one process at once."""

    token: int
    team: int
    process: int


@dataclass(slots=True, eq=False)
class Wait:
    """One request that may wait, from its first handling to its answer.

    `seen`: the state at the first handling. `parking_requested` is set by the handler, and read by
    the web server afterwards. `fired`: something changed since the request was last handled. `memo`
    is kept from one handling to the next.
    """

    book: "WaitBook"
    wake: Callable[[], None]
    seen: str | None = None
    topic: str | None = None
    deadline: float | None = None
    owners: tuple[tuple[str, str], ...] = ()
    parking_requested: bool = False
    fired: bool = False
    memo: dict[str, Any] = field(default_factory=dict)

    def begin(self, topic: str, wait_s: float) -> None:
        """Notice changes of `topic` from now on. Read its state only after this call."""
        if self.deadline is None:
            self.deadline = time.monotonic() + wait_s
        self.book.watch(self, topic)

    def is_over(self) -> bool:
        late = self.deadline is not None and time.monotonic() >= self.deadline
        return late or self.book.is_closed

    def end(self) -> None:
        """End the wait: the request is answered, or its client is gone."""
        self.book.release(self)


class WaitBook:
    """All waiting requests of this process, by topic; safe for use by several threads."""

    def __init__(self, limits: WaitLimits) -> None:
        self._limits = limits
        self._lock = Lock()
        self._by_topic: dict[str, set[Wait]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._admitted = 0
        self.is_closed = False

    def __len__(self) -> int:
        return self._admitted

    def watch(self, wait: Wait, topic: str) -> None:
        with self._lock:
            wait.topic = topic
            self._by_topic.setdefault(topic, set()).add(wait)

    def admit(self, wait: Wait, *, token: str, team: str) -> bool:
        """Return whether one more may wait for this token and this team.

        It counts until `release`.
        """
        if wait.owners:
            return True
        owners = (("token", token), ("team", team))
        most = {"token": self._limits.token, "team": self._limits.team}
        with self._lock:
            is_full = self._admitted >= self._limits.process or any(
                self._counts[owner] >= most[owner[0]] for owner in owners
            )
            if is_full:
                return False
            self._counts.update(owners)
            self._admitted += 1
            wait.owners = owners
        return True

    def release(self, wait: Wait) -> None:
        """Forget the request; a second call changes nothing."""
        with self._lock:
            if wait.topic is not None:
                others = self._by_topic.get(wait.topic, set())
                others.discard(wait)
                if not others:
                    self._by_topic.pop(wait.topic, None)
                wait.topic = None
            if wait.owners:
                self._counts.subtract(wait.owners)
                for owner in wait.owners:
                    if self._counts[owner] <= 0:
                        del self._counts[owner]
                self._admitted -= 1
                wait.owners = ()

    def fire(self, topic: str) -> None:
        """Handle all requests again that wait for the topic."""
        with self._lock:
            waiting = list(self._by_topic.get(topic, ()))
        self._wake(waiting)

    def fire_all(self) -> None:
        """Handle all requests again, since changes may have been missed."""
        with self._lock:
            waiting = [wait for waits in self._by_topic.values() for wait in waits]
        self._wake(waiting)

    def close(self) -> None:
        """End all waits, because the process ends."""
        self.is_closed = True
        self.fire_all()

    @staticmethod
    def _wake(waiting: Iterable[Wait]) -> None:
        for wait in waiting:
            wait.fired = True
            wait.wake()


def wait_in(environ: Mapping[str, Any]) -> Wait | None:
    """Return the `Wait` of a request; None if the web server does not support waiting."""
    wait: Wait | None = environ.get(ENVIRON_KEY)
    return wait
