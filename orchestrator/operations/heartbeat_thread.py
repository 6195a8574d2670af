"""A thread of each process that sends heartbeats, passes on counters and tidies memory.

It ends a process that is stuck. Docker, systemd and gunicorn restart a process that has exited, but
Docker does not restart a container whose health check fails.
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

from orchestrator.database.shared_redis import connect_redis
from orchestrator.dispatch.plan import STEP_S
from orchestrator.operations.counts import flush_counts
from orchestrator.operations.freed_memory import tidy_memory
from orchestrator.operations.heartbeats import (
    EVERY_S,
    build_process_name,
    delete_heartbeat,
    record_heartbeat,
)
from orchestrator.operations.outages import outages
from orchestrator.operations.stuck_threads import BUSY, MAIN_LOOP

logger = logging.getLogger(__name__)

#: Number of heartbeats between two runs of the memory tidying.
TIDY_EVERY = 12
#: A process is stuck if all threads were busy for so long without progress, or if the main loop did
#: not turn.
STUCK_S = 300.0
#: Seconds that a stuck process has to log the reason.
_LOG_S = 10
#: A worker with hanging threads ends after this time: every step would have reached its limit.
END_S = max(STEP_S.values()) + STUCK_S


class HeartbeatThread:
    """Sends heartbeats for `kind`. None, as for web processes: it only passes on counters."""

    def __init__(self, kind: str | None) -> None:
        self.kind = kind
        self._process = os.getpid()
        self._end = threading.Event()
        self._silent = False
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Pass on the remaining counters, and delete the heartbeat."""
        self._end.set()
        self._thread.join(timeout=2)
        with contextlib.suppress(RedisError):
            flush_counts()
            if self.kind is not None:
                queue = settings.CELERY_TASK_DEFAULT_QUEUE
                delete_heartbeat(connect_redis(), queue, self.kind, build_process_name())

    def _is_stuck(self) -> bool:
        """Return whether a worker ends no task any more. It then sends no heartbeat.

        A fetch may take long, but fetches use only some threads of a background worker.
        """
        threads = self._count_threads()
        return threads is not None and BUSY.is_stuck(threads, STUCK_S)

    def _count_threads(self) -> int | None:
        """Return the threads that execute tasks of Celery; None for other processes."""
        if self.kind == "background":
            return settings.BACKGROUND_THREADS
        return settings.CELERY_WORKER_CONCURRENCY if self.kind == "worker" else None

    def problem(self) -> str:
        """Return why this process has to end; empty while it works."""
        if MAIN_LOOP.is_stuck(STUCK_S):
            return f"its main loop has not turned for {STUCK_S:.0f} s"
        threads, after_s = self._count_threads(), END_S
        if self.kind is None:
            threads, after_s = BUSY.threads, STUCK_S
        if threads is not None and BUSY.is_stuck(threads, after_s):
            return f"all of its {threads} threads have hung for {after_s:.0f} s"
        return ""

    def beat_once(self) -> None:
        try:
            if self.kind is not None and not self._is_stuck():
                queue = settings.CELERY_TASK_DEFAULT_QUEUE
                record_heartbeat(connect_redis(), queue, self.kind, build_process_name())
            flush_counts()
            self._silent = False
        except RedisError as error:
            # Main loops wait for Redis while it is away.
            MAIN_LOOP.restart_clock()
            # Log it once: Redis may be away for long.
            if not self._silent:
                logger.warning("no heartbeat and no counters can be sent: %s", error)
            self._silent = True

    def _run(self) -> None:
        for beat in count(1):
            self.beat_once()
            if problem := self.problem():
                end_stuck_process(problem)
            outages.probe_servers()
            if beat % TIDY_EVERY == 0:
                tidy_memory()
            began = time.monotonic()
            if self._end.wait(EVERY_S):
                return
            if time.monotonic() - began > 3 * EVERY_S:
                # The whole process was paused, for example with its container.
                MAIN_LOOP.restart_clock()
                BUSY.note_progress()


def end_stuck_process(problem: str) -> None:
    """Exit at once: stuck threads would block an orderly end.

    Claims expire, and other workers go on.
    """
    # If logging hangs as well, the system ends the process.
    signal.alarm(_LOG_S)
    try:
        logger.critical("%s: this process exits, so that another replaces it", problem)
        # By descriptor: Celery replaces sys.stderr with an object that is no file.
        faulthandler.dump_traceback(file=2, all_threads=True)
    finally:
        os._exit(1)


_heartbeats: HeartbeatThread | None = None


def start_heartbeats(kind: str | None) -> None:
    """Start one thread per process. A forked process starts its own."""
    global _heartbeats
    if _heartbeats is None or _heartbeats._process != os.getpid():
        _heartbeats = HeartbeatThread(kind)
        _heartbeats.start()


def stop_heartbeats() -> None:
    if _heartbeats is not None and _heartbeats._process == os.getpid():
        _heartbeats.stop()
