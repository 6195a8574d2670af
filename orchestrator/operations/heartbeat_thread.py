"""A thread of each process: it says it is alive, hands on what was counted, and tidies memory.

It ends a process that is stuck: Docker, systemd and gunicorn restart a process that has exited,
and Docker does not restart one whose health check fails.
"""

import contextlib
import faulthandler
import logging
import os
import signal
import threading
import time
from itertools import count

from django.conf import settings
from redis import RedisError

from orchestrator.dispatch.plan import STEP_S
from orchestrator.operations.counts import hand_on
from orchestrator.operations.freed_memory import give_free_pages_back
from orchestrator.operations.heartbeats import EVERY_S, delete_heartbeat, own_name, record_heartbeat
from orchestrator.operations.our_redis import our_redis
from orchestrator.operations.outages import outages
from orchestrator.operations.stuck_threads import BUSY, MAIN_LOOP

logger = logging.getLogger(__name__)

#: Beats from one tidying to the next.
TIDY_EVERY = 12
#: All threads were at work for so long and none got further, or the main loop did not turn.
STUCK_S = 300.0
#: A process that ends itself has so many seconds to log why.
_LOG_S = 10
#: A worker whose threads hang ends itself when no step can be the reason any more.
END_S = max(STEP_S.values()) + STUCK_S


class HeartbeatThread:
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
                queue = settings.CELERY_TASK_DEFAULT_QUEUE
                delete_heartbeat(our_redis(), queue, self.kind, own_name())

    def _is_stuck(self) -> bool:
        """A worker that ends no task any more is not said to be alive.

        Fetches of repositories may take long by nature.
        """
        threads = settings.CELERY_WORKER_CONCURRENCY
        return self.kind == "worker" and BUSY.is_stuck(threads, STUCK_S)

    def problem(self) -> str:
        """Why this process has to end; empty while it works."""
        if MAIN_LOOP.is_stuck(STUCK_S):
            return f"its main loop has not turned for {STUCK_S:.0f} s"
        if self.kind == "worker":
            threads, after_s = settings.CELERY_WORKER_CONCURRENCY, END_S
        elif self.kind is None and BUSY.threads is not None:
            threads, after_s = BUSY.threads, STUCK_S
        else:
            return ""
        if BUSY.is_stuck(threads, after_s):
            return f"all of its {threads} threads have hung for {after_s:.0f} s"
        return ""

    def beat_once(self) -> None:
        try:
            if self.kind is not None and not self._is_stuck():
                queue = settings.CELERY_TASK_DEFAULT_QUEUE
                record_heartbeat(our_redis(), queue, self.kind, own_name())
            hand_on()
            self._silent = False
        except RedisError as error:
            # Without Redis, main loops wait for it.
            MAIN_LOOP.excuse()
            # Once, and not each time: Redis may be away for long.
            if not self._silent:
                logger.warning("nothing is counted or said to be alive: %s", error)
            self._silent = True

    def _run(self) -> None:
        for beat in count(1):
            self.beat_once()
            if problem := self.problem():
                end_stuck_process(problem)
            outages.look()
            if beat % TIDY_EVERY == 0:
                give_free_pages_back()
            began = time.monotonic()
            if self._end.wait(EVERY_S):
                return
            if time.monotonic() - began > 3 * EVERY_S:
                # The whole process stood still, such as in a container that was paused.
                MAIN_LOOP.excuse()
                BUSY.note_progress()


def end_stuck_process(problem: str) -> None:
    """At once: what is stuck would hold up an orderly end. Claims run out, and others go on."""
    # Where even the log hangs, the system ends the process.
    signal.alarm(_LOG_S)
    try:
        logger.critical("%s: this process ends itself, so that another takes its place", problem)
        # By number: Celery's sys.stderr is no file.
        faulthandler.dump_traceback(file=2, all_threads=True)
    finally:
        os._exit(1)


_heartbeats: HeartbeatThread | None = None


def start_heartbeats(kind: str | None) -> None:
    """One thread a process; a fork begins another."""
    global _heartbeats
    if _heartbeats is None or _heartbeats._process != os.getpid():
        _heartbeats = HeartbeatThread(kind)
        _heartbeats.start()


def stop_heartbeats() -> None:
    if _heartbeats is not None and _heartbeats._process == os.getpid():
        _heartbeats.stop()
