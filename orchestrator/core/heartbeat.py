"""Claims of work: a heartbeat renews them until the deadline of the current step.

A claim is a row that a worker has taken for a few seconds. One thread of the process renews the
claims whose steps last longer. When a step passes its deadline, the thread closes what the step
holds open and stops renewing the claim.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator

from orchestrator.core.errors import HostError

logger = logging.getLogger(__name__)

#: Interval at which the heartbeat checks the claims of this process.
BEAT_S = 1.0
#: A claim that cannot be renewed is given up when this share of its time remains.
MARGIN = 1 / 8

_Close = Callable[[], None]


class ClaimLost(Exception):
    """Another worker has the work now, or may take it at any moment."""


class StepTimedOutError(HostError):
    """A step passed its deadline; what it had open was closed."""

    transient = True


class Claim:
    """The hold of one worker on one piece of work.

    `renew` extends it for `lasts_s` seconds by the clock of the database, and returns False if
    another worker has it. The heartbeat thread calls it within `session`. `since`: monotonic
    seconds before the claim was made. Times of this process are differences of its monotonic clock
    only.
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
        """Start the next step with a deadline in `limit_s` seconds."""
        self._step, self._limit_s = step, limit_s
        self._timed_out = False
        self._deadline = time.monotonic() + limit_s

    def check(self) -> None:
        """Check the claim; call it before each external action.

        Raise ClaimLost if the claim has expired or is lost, StepTimedOutError after the deadline.
        """
        if self._is_lost():
            raise ClaimLost
        if self._timed_out or time.monotonic() >= self._deadline:
            raise StepTimedOutError(
                f"{self._step} took longer than {self._limit_s:g} s and was stopped; "
                "check the host and the network between"
            )

    def renew(self) -> None:
        """Renew the claim; call it before each write. Raise ClaimLost if it is lost."""
        now = time.monotonic()
        if self._lost or not self._renew():
            raise ClaimLost
        self._renewed = now

    @contextlib.contextmanager
    def closing(self, close: _Close) -> Iterator[None]:
        """Call `close` if the deadline passes or the claim is lost during the block.

        If the block raises because of that, the error is replaced by its reason: see `check`.
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
        """Renew the claim if that is due. Close its step if it is late or the claim is lost."""
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
            # The database may be back at the next beat; until then the claim keeps running out.
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
            # Closing may wait for the other side; the heartbeat must not.
            threading.Thread(target=_close_quietly, args=(close,), daemon=True).start()


def build_unlimited_claim() -> Claim:
    """Return a claim without a row: it is never lost and has no deadline."""
    claim = Claim(renew=lambda: True, lasts_s=math.inf, since=time.monotonic())
    claim.begin("the work", math.inf)
    return claim


class Heartbeat:
    """One thread that checks all claims of the process; it sleeps while there are none."""

    def __init__(self) -> None:
        self._claims: list[Claim] = []
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def keeping(self, claim: Claim) -> Iterator[Claim]:
        """Keep the claim alive during the block."""
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


#: For this process.
HEARTBEAT = Heartbeat()
