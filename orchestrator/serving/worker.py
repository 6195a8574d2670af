"""The gunicorn worker that serves Pitwall (docs/decisions/0044).

A request gets a thread when all of it has arrived. The thread is free again when the answer is in
the send buffer. Requests that wait for a change have no thread, and probes have separate threads.
It builds on gunicorn's ThreadWorker, whose version is pinned; tests/serving checks the internals
that it uses.
"""

import math
import selectors
from collections import deque
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from gunicorn.http.errors import LimitRequestLine

from orchestrator.core.waits import ENVIRON_KEY, Wait, WaitBook
from orchestrator.operations.listening import Listener
from orchestrator.operations.stuck_threads import BUSY
from orchestrator.serving import answers, pace
from orchestrator.serving.connection import Connection, State
from orchestrator.serving.framing import Stage, read_path
from orchestrator.serving.lanes import Lane, Lanes
from orchestrator.serving.limits import wait_limits
from orchestrator.serving.poller import Poller

#: The most parked requests that are handled again at the same time, so that others run in between.
MOST_WOKEN = 2


class ParkedError(Exception):
    """Not a failure: the request is to be parked."""


class Worker(Poller):
    wsgi: Any

    def init_process(self) -> None:
        self.ready: deque[Connection] = deque()
        self.uploads: deque[Connection] = deque()
        self.woken = 0
        BUSY.threads = self.cfg.threads
        super().init_process()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.lanes = Lanes(self.tpool, self.shares.requests)
        self.book = WaitBook(wait_limits())
        self.listener = Listener(self.book)
        application: Any = self.wsgi

        def parking(environ: dict[str, Any], start_response: Any) -> Any:
            wait = environ["gunicorn.socket"].connection.wait
            environ[ENVIRON_KEY] = wait
            answer = application(environ, start_response)
            if wait is not None and wait.parking_requested:
                answer.close()
                raise ParkedError
            if not self.alive:
                # The stop came after gunicorn chose the header, and may be what ended the wait.
                start_response.__self__.force_close()
            return answer

        self.wsgi = parking

    def _end_waits(self) -> None:
        self.book.close()

    def _end(self) -> None:
        self.listener.stop()
        self.lanes.shutdown()
        super()._end()

    # From a complete request to its answer, in the main thread.

    def _begin(self, connection: Connection) -> None:
        connection.state = State.QUEUED
        if connection.stage() is not Stage.STREAMED:
            lane = self.lanes.lane_for(read_path(connection.incoming), connection.owner)
            self._enter(connection, lane)
        elif connection.take_place(self.shares.uploads):
            self._enter(connection, self.lanes.requests)
        else:
            self.uploads.append(connection)
            connection.deadline = pace.now() + pace.UPLOAD_WAIT_S

    def _enter(self, connection: Connection, lane: Lane) -> None:
        """Queue the request for a thread, or refuse it if there is no room."""
        if not (connection.take_place(lane.places) and connection.begin_request()):
            connection.free_places()
            self._refuse_as_busy(connection, answers.BUSY, "too many wait for a thread")
            return
        if not connection.streamed:
            wake = partial(self._wake_later, connection)
            connection.wait = Wait(book=self.book, wake=wake)
        self._submit(lane.pool, connection)

    def _submit(self, pool: Executor, connection: Connection) -> None:
        connection.state = State.HANDLED
        if connection.wait is not None:
            connection.wait.fired = connection.wait.parking_requested = False
        handle = self._handle_watched if pool is self.tpool else self.handle
        done = pool.submit(handle, connection)
        done.add_done_callback(partial(self.method_queue.defer, self._finish, connection))

    def _finish(self, connection: Connection, done: "Future[Any]") -> None:
        """After its thread: answer the request or park it."""
        wait = connection.wait
        if wait is not None and wait.parking_requested:
            self._dispatch(self._park, connection)
        else:
            connection.keep = _is_kept(connection, done) and self.alive
            self._dispatch(self._answer, connection)
        self._begin_uploads()
        self._handle_woken()

    def _answer(self, connection: Connection) -> None:
        self._free_places(connection)
        if connection.wait is not None:
            connection.wait.end()
            connection.wait = None
        connection.end_request()
        if connection.is_broken:
            self._close(connection)
        else:
            self._flush(connection)

    def _free_places(self, connection: Connection) -> None:
        connection.free_places()
        self.woken -= connection.was_woken
        connection.was_woken = False

    def _begin_uploads(self) -> None:
        """Start uploads in order of arrival, except for clients that have used up their share."""
        waiting, self.uploads = self.uploads, deque()
        for connection in waiting:
            if connection.state is not State.QUEUED:
                continue  # it was refused
            if connection.take_place(self.shares.uploads):
                self._dispatch(partial(self._enter, lane=self.lanes.requests), connection)
            else:
                self.uploads.append(connection)

    # Requests that wait.

    def _park(self, connection: Connection) -> None:
        wait = connection.wait
        assert wait is not None
        self._free_places(connection)
        self.listener.start()
        self._watch(connection, State.PARKED, selectors.EVENT_READ, self._on_parked_readable)
        if wait.fired or wait.is_over():
            self._wake(connection)

    def _on_parked_readable(self, connection: Connection) -> None:
        """Its client is gone, or sends the next request, which is read after this answer."""
        before = len(connection.incoming)
        if connection.receive() == 0:
            self._close(connection)
        elif len(connection.incoming) > before:
            self._unwatch(connection)

    def _wake_later(self, connection: Connection) -> None:
        """Wake the request; may be called from any thread."""
        self.method_queue.defer(self._wake, connection)

    def _wake(self, connection: Connection) -> None:
        if connection.state is not State.PARKED:
            return
        self._unwatch(connection)
        connection.state, connection.deadline = State.QUEUED, math.inf
        self.ready.append(connection)
        self._handle_woken()

    def _handle_woken(self) -> None:
        while self.ready and self.woken < MOST_WOKEN:
            connection = self.ready.popleft()
            if connection.state is State.CLOSED:
                continue
            self.woken += 1
            connection.was_woken = True
            connection.repeat_request()
            self._submit(self.tpool, connection)

    # In a thread.

    def _handle_watched(self, connection: Connection) -> Any:
        """Handle a request and count it: a process whose threads all hang exits.

        Probes do not count.
        """
        BUSY.begin()
        try:
            return self.handle(connection)
        finally:
            BUSY.end()

    def handle_request(self, req: Any, conn: Connection) -> bool:
        try:
            return bool(super().handle_request(req, conn))
        except ParkedError:
            return True

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answer an address that is too long with a problem document, as in the API."""
        if not isinstance(exc, LimitRequestLine):
            super().handle_error(req, client, addr, exc)
            return
        self.log.warning("An address is too long: %s", exc)
        client.sendall(answers.TOO_LONG)


def _is_kept(connection: Connection, done: "Future[Any]") -> bool:
    """Return whether the client may send its next request on the same connection."""
    if done.cancelled() or done.exception() is not None:
        connection.is_broken = True
        return False
    return bool(done.result())
