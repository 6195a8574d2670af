"""Listens to PostgreSQL's notices about changed runs: one connection and one thread per process."""

import logging
import threading

import psycopg
from django.db import connection

from orchestrator.core.waits import WaitBook

logger = logging.getLogger(__name__)

#: The trigger of runs/migrations/0001 sends to this channel.
CHANNEL = "pitwall_run_state"
#: The application name of its sessions in pg_stat_activity.
NAME = "pitwall-listener"
#: Interval at which a silent connection is checked.
CHECK_S = 15.0
#: Pauses between attempts to connect, in seconds; the last one repeats.
PAUSES_S = (0.2, 1.0, 2.0, 5.0)


class Listener:
    """Fires the topics of a wait book.

    After each new connection it fires all topics, because it missed the changes while it had none.
    """

    def __init__(self, book: WaitBook) -> None:
        self._book = book
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread unless it runs already. It ends with its process."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._end.set()

    def _run(self) -> None:
        failures = 0
        while not self._end.is_set():
            try:
                with self._connect() as session:
                    session.execute(f"LISTEN {CHANNEL}")
                    self._book.fire_all()
                    failures = 0
                    self._follow(session)
            except Exception as error:
                # Without this thread every waiting request would wait until its timeout.
                is_known = isinstance(error, psycopg.Error | OSError)
                if not failures:
                    logger.warning(
                        "cannot listen to changes of runs: %s", error, exc_info=not is_known
                    )
                self._end.wait(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1

    def _connect(self) -> psycopg.Connection:
        parameters = connection.get_connection_params()
        return psycopg.connect(**{**parameters, "autocommit": True, "application_name": NAME})

    def _follow(self, session: psycopg.Connection) -> None:
        while not self._end.is_set():
            for notice in session.notifies(timeout=CHECK_S):
                self._book.fire(notice.payload)
            session.execute("SELECT 1")
