"""The main loop of a worker: it reads whole requests, sends kept answers, and limits their time."""

import contextlib
import errno
import selectors
import time
from functools import partial
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from gunicorn.workers.gthread import ThreadWorker

from orchestrator.core.addresses import mask_address
from orchestrator.serving import answers, pace
from orchestrator.serving.connection import Connection, State
from orchestrator.serving.framing import Stage, accepts_html, find_client
from orchestrator.serving.limits import limit_connections
from orchestrator.serving.shares import Shares

#: Interval at which deadlines are checked.
TICK_S = 0.25
#: No connection is accepted for so long after the system refused one.
PAUSE_S = 1.0


class Poller(ThreadWorker):
    """A subclass handles the requests: `_begin` gets each complete one."""

    def init_process(self) -> None:
        self.shares = Shares.for_threads(self.cfg.threads)
        self.connections: set[Connection] = set()
        self.worker_connections = limit_connections(self.cfg.worker_connections)
        self.checked_at = self.accepts_from = 0.0
        super().init_process()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.busy_page = answers.build_busy_page(render_to_string("503_busy.html"))

    def _begin(self, connection: Connection) -> None:
        raise NotImplementedError

    def _wake(self, connection: Connection) -> None:
        """Handle a parked request again."""
        raise NotImplementedError

    def _end_waits(self) -> None:
        """Answer all waiting requests now, because the process ends."""
        raise NotImplementedError

    def _end(self) -> None:
        for connection in list(self.connections):
            self._close(connection)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()

    def run(self) -> None:
        fileno = self.method_queue.fileno()
        self.poller.register(fileno, selectors.EVENT_READ, self.method_queue.run_callbacks)
        while self.alive and self.is_parent_alive():
            self.notify()
            self.set_accept_enabled(pace.now() >= self.accepts_from and self._make_room())
            self.wait_for_and_dispatch_events(timeout=TICK_S if self.connections else 1.0)
            self._check_deadlines()
        self._stop()

    def _stop(self) -> None:
        """Stop accepting. Requests that are being sent may end within the graceful timeout."""
        self.alive = False
        self.set_accept_enabled(False)
        self._end_waits()
        linger = pace.now() + pace.LINGER_S
        for connection in self._list_connections(State.READING):
            if not connection.incoming:
                connection.deadline = min(connection.deadline, linger)
        until = time.monotonic() + self.cfg.graceful_timeout
        while self.connections and time.monotonic() < until:
            self.notify()
            self.wait_for_and_dispatch_events(timeout=TICK_S)
            self._check_deadlines()
        self._end()

    def _list_connections(self, *states: State) -> list[Connection]:
        return [each for each in self.connections if each.state in states]

    # New connections.

    def _make_room(self) -> bool:
        """Return whether one more connection fits.

        If all places are taken, close the one that has been silent for longest.
        """
        return len(self.connections) < self.worker_connections or self._close_a_silent_one()

    def _close_a_silent_one(self) -> bool:
        """Close the longest silent one without a whole request.

        A new one has ENTRY_S to send it.
        """
        latest = pace.now() - pace.ENTRY_S
        silent = [each for each in self._list_connections(State.READING) if each.since <= latest]
        if silent:
            self._close(min(silent, key=lambda each: each.since))
        return bool(silent)

    def accept(self, listener: Any) -> None:
        try:
            raw, client = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                # Usually there is no free file descriptor, and only for a short time.
                self.log.warning("No connection can be accepted: %s", error)
                self.accepts_from = pace.now() + PAUSE_S
                self._close_a_silent_one()
                self.set_accept_enabled(False)
            return
        owner = mask_address(_find_peer(client))
        connection = Connection(self.cfg, raw, client, listener.getsockname(), self.shares, owner)
        self.connections.add(connection)
        self._read(connection)

    # Time limits.

    def _check_deadlines(self) -> None:
        now = pace.now()
        if now - self.checked_at < TICK_S:
            return
        self.checked_at = now
        for connection in list(self.connections):
            if connection.state is State.PARKED:
                if connection.wait is None or connection.wait.is_over():
                    self._wake(connection)
            elif now >= connection.deadline and connection.state not in _UNBOUNDED:
                self._give_up(connection)
        self._bound_incoming()

    def _give_up(self, connection: Connection) -> None:
        if connection.state is State.READING and connection.incoming:
            self._refuse(connection, answers.TOO_SLOW, "it arrived too slowly")
        elif connection.state is State.QUEUED:
            document = answers.TOO_MANY_UPLOADS
            self._refuse_as_busy(connection, document, "too many long bodies are sent")
        else:
            self._close(connection)

    def _bound_incoming(self) -> None:
        """Limit pipelined requests that arrive while another one is handled."""
        incoming = sum(len(each.incoming) for each in self.connections)
        if incoming <= pace.MOST_INCOMING_BYTES:
            return
        reading = [
            each for each in self._list_connections(State.READING, State.QUEUED)
            if each.incoming and not each.request
        ]  # fmt: skip
        for connection in sorted(reading, key=lambda each: each.deadline):
            incoming -= len(connection.incoming)
            self._refuse_as_busy(connection, answers.BUSY, "too many are sent at once")
            if incoming <= pace.MOST_INCOMING_BYTES:
                return

    def _refuse_as_busy(self, connection: Connection, document: bytes, reason: str) -> None:
        is_page = accepts_html(connection.incoming)
        self._refuse(connection, self.busy_page if is_page else document, reason)

    def _refuse(self, connection: Connection, answer: bytes, reason: str) -> None:
        """Answer the request that arrives, and close the connection.

        Nothing was done for the request.
        """
        self.log.info("A request was refused: %s.", reason)
        self._unwatch(connection)
        connection.incoming.clear()
        connection.frame, connection.keep = None, False
        connection.put(answer)
        self._dispatch(self._flush, connection)

    # The states of a connection.

    def _watch(self, connection: Connection, state: State, events: int, callback: Any) -> None:
        connection.state = state
        self.poller.register(connection.raw, events, partial(self._dispatch, callback, connection))

    def _dispatch(self, callback: Any, connection: Connection, _raw: Any = None) -> None:
        """Run a callback. No error of a client may end the main loop."""
        try:
            callback(connection)
        except Exception as error:
            if not isinstance(error, OSError):
                self.log.exception("A connection failed.")
            self._close(connection)

    def _unwatch(self, connection: Connection) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self.poller.unregister(connection.raw)

    def _close(self, connection: Connection) -> None:
        if connection.state is State.CLOSED:
            return
        self._unwatch(connection)
        self.connections.discard(connection)
        if connection.wait is not None:
            connection.wait.end()
        connection.close()

    def _read(self, connection: Connection) -> None:
        if connection.incoming and connection.stage() is not Stage.INCOMPLETE:
            self._come(connection)
        else:
            self._watch(connection, State.READING, selectors.EVENT_READ, self._on_readable)

    def _on_readable(self, connection: Connection) -> None:
        if not connection.incoming:
            connection.since = pace.now()
            connection.deadline = connection.since + pace.HEAD_S
        received = connection.receive()
        if received == 0:
            self._close(connection)
        elif received and connection.stage() is not Stage.INCOMPLETE:
            self._unwatch(connection)
            self._come(connection)

    def _come(self, connection: Connection) -> None:
        """Handle a complete request."""
        proxies = settings.ALLAUTH_TRUSTED_PROXY_COUNT
        peer = _find_peer(connection.client)
        connection.owner = mask_address(find_client(connection.incoming, peer, proxies))
        self._begin(connection)

    def _flush(self, connection: Connection) -> None:
        if connection.flush():
            self._after_answer(connection)
        else:
            connection.deadline = pace.now() + pace.GRACE_S
            self._watch(connection, State.FLUSHING, selectors.EVENT_WRITE, self._on_writable)

    def _on_writable(self, connection: Connection) -> None:
        unsent = len(connection.outgoing)
        is_sent = connection.flush()
        connection.deadline = pace.extend_deadline(
            connection.deadline, unsent - len(connection.outgoing)
        )
        if is_sent:
            self._unwatch(connection)
            self._after_answer(connection)

    def _after_answer(self, connection: Connection) -> None:
        if connection.keep:
            connection.since = pace.now()
            connection.deadline = connection.since + (
                pace.HEAD_S if connection.incoming else self.cfg.keepalive
            )
            self._read(connection)
        else:
            connection.half_close()
            connection.deadline = pace.now() + pace.LINGER_S
            self._watch(connection, State.LINGERING, selectors.EVENT_READ, self._on_lingering)

    def _on_lingering(self, connection: Connection) -> None:
        connection.incoming.clear()
        if connection.receive() == 0:
            self._close(connection)


def _find_peer(client: Any) -> str:
    """Return the address of a socket's other end; empty for a UNIX socket."""
    return str(client[0]) if isinstance(client, tuple) and client else ""


#: Connections in these states have no deadline here: their owner limits the time.
_UNBOUNDED = frozenset({State.HANDLED, State.CLOSED})
