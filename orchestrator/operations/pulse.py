"""A thread of each process: it says it is alive, hands on what was counted, and tidies memory."""

import contextlib
import logging
import os
import threading
from itertools import count

from django.conf import settings
from redis import RedisError

from orchestrator.operations.busy import BUSY
from orchestrator.operations.counts import hand_on
from orchestrator.operations.freed_memory import give_free_pages_back
from orchestrator.operations.heard import EVERY_S, forget, note_heard, own_name
from orchestrator.operations.our_redis import our_redis
from orchestrator.operations.outages import outages

logger = logging.getLogger(__name__)

#: Beats from one tidying to the next.
TIDY_EVERY = 12
#: All threads of a worker were at work for so long, and none ended its task.
STUCK_S = 300.0


class Pulse:
    """`kind` is said to be alive; None: only counts are handed on, as by web processes."""

    def __init__(self, kind: str | None) -> None:
        self.kind = kind
        self._process = os.getpid()
        self._end = threading.Event()
        self._silent = False
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What was counted until now still counts; the process is not missed."""
        self._end.set()
        self._thread.join(timeout=2)
        with contextlib.suppress(RedisError):
            hand_on()
            if self.kind is not None:
                forget(our_redis(), settings.CELERY_TASK_DEFAULT_QUEUE, self.kind, own_name())

    def _is_stuck(self) -> bool:
        """A worker that ends no task any more is not said to be alive, so that it is restarted.

        Fetches of repositories may take long by nature.
        """
        threads = settings.CELERY_WORKER_CONCURRENCY
        return self.kind == "worker" and BUSY.is_stuck(threads, STUCK_S)

    def beat_once(self) -> None:
        try:
            if self.kind is not None and not self._is_stuck():
                queue = settings.CELERY_TASK_DEFAULT_QUEUE
                note_heard(our_redis(), queue, self.kind, own_name())
            hand_on()
            self._silent = False
        except RedisError as error:
            # Once, and not each time: Redis may be away for long.
            if not self._silent:
                logger.warning("nothing is counted or said to be alive: %s", error)
            self._silent = True

    def _run(self) -> None:
        for beat in count(1):
            self.beat_once()
            outages.look()
            if beat % TIDY_EVERY == 0:
                give_free_pages_back()
            if self._end.wait(EVERY_S):
                return


_pulse: Pulse | None = None


def start_pulse(kind: str | None) -> None:
    """One thread a process; a fork begins another."""
    global _pulse
    if _pulse is None or _pulse._process != os.getpid():
        _pulse = Pulse(kind)
        _pulse.start()


def stop_pulse() -> None:
    if _pulse is not None and _pulse._process == os.getpid():
        _pulse.stop()
