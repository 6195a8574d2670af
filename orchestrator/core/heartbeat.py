"""Claims of work: a heartbeat renews them until the deadline of the step that goes on.

A claim is a row that a worker has taken for a few seconds. One thread of the process renews the
claims whose steps last longer. A step that passes its deadline is cut off: what it holds open is
closed, and its claim is renewed no more.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator

from orchestrator.core.errors import HostError

logger = logging.getLogger(__name__)

#: So often the heartbeat looks at the claims of this process.
BEAT_S = 1.0
#: A claim that could not be renewed is given up when this share of its time is left.
MARGIN = 1 / 8

_Close = Callable[[], None]


class ClaimLost(Exception):
    """Another worker has the work now, or may take it at any moment."""


class StepTimedOutError(HostError):
    """A step took longer than it may; what it had open was closed."""

    transient = True


class Claim:
    """The hold of one worker on one piece of work.

    `renew` extends it for `lasts_s` seconds by the clock of the database, and returns False where
    somebody else has it. The thread of the heartbeat calls it within `session`. `since`: monotonic
    seconds, taken before the claim was made. Times of this process are only differences of its
    monotonic clock.
    """

    def __init__(
        self,
        *,
        renew: Callable[[], bool],
        lasts_s: float,
        since: float,
        session: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._renew, self._lasts_s, self._session = renew, lasts_s, session
        self._renewed = since
        self._deadline, self._limit_s, self._step = since + lasts_s, lasts_s, "the step"
        self._lost = self._timed_out = False
        self._open: list[_Close] = []
        self._lock = threading.Lock()

    def begin(self, step: str, limit_s: float) -> None:
        """The next step: from now on it may take so long."""
        self._step, self._limit_s = step, limit_s
        self._timed_out = False
        self._deadline = time.monotonic() + limit_s

    def check(self) -> None:
        """To be called before each action on something outside.

        ClaimLost where the claim is not ours any more, StepTimedOutError after the deadline.
        """
        if self._is_lost():
            raise ClaimLost
        if self._timed_out or time.monotonic() >= self._deadline:
            raise StepTimedOutError(
                f"{self._step} took longer than {self._limit_s:g} s and was stopped; "
                "check the host and the network between"
            )

    def renew(self) -> None:
        """To be called before something is written; ClaimLost where it is not ours any more."""
        now = time.monotonic()
        if self._lost or not self._renew():
            raise ClaimLost
        self._renewed = now

    @contextlib.contextmanager
    def closing(self, close: _Close) -> Iterator[None]:
        """While the block lasts, `close` is called when the deadline passes or the claim is lost.

        What the block raises because of that becomes the reason: see `check`.
        """
        self.check()
        with self._lock:
            self._open.append(close)
        try:
            yield
        except HostError:
            self.check()
            raise
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._open.remove(close)

    def beat(self) -> None:
        """Renews the claim where that is due, and cuts its step off where it is late or lost."""
        now = time.monotonic()
        if self._is_lost() or now >= self._deadline:
            self._cut()
        elif now - self._renewed >= self._lasts_s / 3:
            self._try_to_renew(now)

    def _try_to_renew(self, now: float) -> None:
        try:
            with self._session():
                renewed = self._renew()
        except Exception:
            # The database may be back at the next beat; until then time runs out.
            logger.warning("a claim could not be renewed", exc_info=True)
            return
        if renewed:
            self._renewed = now
        else:
            self._lost = True
            self._cut()

    def _is_lost(self) -> bool:
        return self._lost or time.monotonic() - self._renewed >= self._lasts_s * (1 - MARGIN)

    def _cut(self) -> None:
        self._timed_out = True
        with self._lock:
            closers, self._open = self._open, []
        for close in closers:
            # Closing may wait for the other side; the heartbeat does not.
            threading.Thread(target=_close_quietly, args=(close,), daemon=True).start()


def unlimited() -> Claim:
    """For work that no row stands for: it is never lost, and may take as long as it likes."""
    claim = Claim(renew=lambda: True, lasts_s=math.inf, since=time.monotonic())
    claim.begin("the work", math.inf)
    return claim


class Heartbeat:
    """One thread that looks at all claims of the process; it sleeps while there are none."""

    def __init__(self) -> None:
        self._claims: list[Claim] = []
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def keeping(self, claim: Claim) -> Iterator[Claim]:
        """Keeps the claim for the block."""
        with self._wake:
            self._claims.append(claim)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
                self._thread.start()
            self._wake.notify()
        try:
            yield claim
        finally:
            with self._wake:
                self._claims.remove(claim)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: bool(self._claims))
            time.sleep(BEAT_S)
            with self._wake:
                claims = list(self._claims)
            for claim in claims:
                try:
                    claim.beat()
                except Exception:
                    # The other claims depend on this thread.
                    logger.exception("a beat failed")


def _close_quietly(close: _Close) -> None:
    with contextlib.suppress(Exception):
        close()


#: Of this process.
HEARTBEAT = Heartbeat()
