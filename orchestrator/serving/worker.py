"""The worker of gunicorn that Pitwall is served by (docs/decisions/0044).

A thread is given to a request when all of it has come, and is free again when its answer is kept
to be sent. Requests that wait for a change have no thread, and probes have threads of their own.
Rests on gunicorn's ThreadWorker, whose version is pinned: tests/serving says what of it.
"""

import contextlib
import errno
import math
import selectors
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from gunicorn.http.errors import LimitRequestLine
from gunicorn.workers.gthread import ThreadWorker

from orchestrator.core.waits import ENVIRON_KEY, Wait, WaitBook
from orchestrator.operations.listening import Listener
from orchestrator.serving import answers, pace
from orchestrator.serving.connection import Connection, State
from orchestrator.serving.framing import Stage, path_of
from orchestrator.serving.limits import most_connections, wait_limits

#: So often deadlines are looked at.
TICK_S = 0.25
#: Requests that waited and are handled again at the same time: interactive ones come between.
MOST_WOKEN = 2
#: Each has a thread of its own, so that none is delayed by requests or by the others.
PROBES = (b"/healthz", b"/readyz", b"/metrics")


class ParkedError(Exception):
    """Not a failure: the request is to be set aside."""


class Worker(ThreadWorker):
    wsgi: Any

    def init_process(self) -> None:
        self.means = pace.Means.for_threads(self.cfg.threads)
        self.connections: set[Connection] = set()
        self.ready: deque[Connection] = deque()
        self.uploads: deque[Connection] = deque()
        self.woken = self.uploading = 0
        self.most_uploads = max(1, self.cfg.threads // 4)
        self.worker_connections = most_connections(self.cfg.worker_connections)
        self.probe_pools = {path: ThreadPoolExecutor(max_workers=1) for path in PROBES}
        self.looked_at = 0.0
        super().init_process()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.book = WaitBook(wait_limits())
        self.listener = Listener(self.book)
        application: Any = self.wsgi

        def parking(environ: dict[str, Any], start_response: Any) -> Any:
            wait = environ["gunicorn.socket"].connection.wait
            environ[ENVIRON_KEY] = wait
            answer = application(environ, start_response)
            if wait is not None and wait.asked_to_park:
                answer.close()
                raise ParkedError
            return answer

        self.wsgi = parking

    # The main loop.

    def run(self) -> None:
        fileno = self.method_queue.fileno()
        self.poller.register(fileno, selectors.EVENT_READ, self.method_queue.run_callbacks)
        while self.alive and self.is_parent_alive():
            self.notify()
            self.set_accept_enabled(self._make_room())
            self.wait_for_and_dispatch_events(timeout=TICK_S if self.connections else 1.0)
            self._look_at_deadlines()
        self._stop()

    def _stop(self) -> None:
        """Whoever waits is answered now; whoever sends may end within the time of grace."""
        self.alive = False
        self.set_accept_enabled(False)
        self.book.close()
        linger = pace.now() + pace.LINGER_S
        for connection in self._in(State.READING):
            if not connection.incoming:
                connection.deadline = min(connection.deadline, linger)
        until = time.monotonic() + self.cfg.graceful_timeout
        while self.connections and time.monotonic() < until:
            self.notify()
            self.wait_for_and_dispatch_events(timeout=TICK_S)
            self._look_at_deadlines()
        self._end()

    def _end(self) -> None:
        self.listener.stop()
        for pool in (self.tpool, *self.probe_pools.values()):
            pool.shutdown(wait=False, cancel_futures=True)
        for connection in list(self.connections):
            self._close(connection)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()

    def _in(self, *states: State) -> list[Connection]:
        return [each for each in self.connections if each.state in states]

    def _make_room(self) -> bool:
        """Whether one more may come. Where all places are taken, the connection that has been
        silent for longest loses its own."""
        if len(self.connections) < self.worker_connections:
            return True
        reading = self._in(State.READING)
        if not reading:
            return False
        idle = [each for each in reading if not each.incoming] or reading
        self._close(min(idle, key=lambda each: each.deadline))
        return True

    def accept(self, listener: Any) -> None:
        try:
            raw, client = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self.log.warning("No file is left for a new connection.")
                self.worker_connections = max(1, len(self.connections))
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise
            return
        connection = Connection(self.cfg, raw, client, listener.getsockname(), self.means)
        self.connections.add(connection)
        self._read(connection)

    def _look_at_deadlines(self) -> None:
        now = pace.now()
        if now - self.looked_at < TICK_S:
            return
        self.looked_at = now
        for connection in list(self.connections):
            if connection.state is State.PARKED:
                if connection.wait is None or connection.wait.is_over():
                    self._wake(connection)
            elif now >= connection.deadline and connection.state not in _UNBOUNDED:
                self._give_up(connection)
        incoming = sum(len(each.incoming) for each in self.connections)
        if incoming > pace.MOST_INCOMING_BYTES:
            # Pipelined requests of a connection that is handled count as well, and are bounded.
            reading = [each for each in self._in(State.READING) if each.incoming]
            for connection in sorted(reading, key=lambda each: each.deadline):
                incoming -= len(connection.incoming)
                self._close(connection)
                if incoming <= pace.MOST_INCOMING_BYTES:
                    break

    def _give_up(self, connection: Connection) -> None:
        if connection.state is State.READING and connection.incoming:
            self.log.info("A request came too slowly and was cut off.")
            connection.outgoing += answers.TOO_SLOW
            self.means.outgoing.add(len(answers.TOO_SLOW))
            with contextlib.suppress(OSError):
                connection.flush()
        self._close(connection)

    # What a connection goes through, in the main thread.

    def _watch(self, connection: Connection, state: State, events: int, callback: Any) -> None:
        connection.state = state
        self.poller.register(connection.raw, events, partial(self._dispatch, callback, connection))

    def _dispatch(self, callback: Any, connection: Connection, _raw: Any = None) -> None:
        """Nothing that a client does may end the main loop."""
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
            self._begin(connection)
        else:
            self._watch(connection, State.READING, selectors.EVENT_READ, self._on_readable)

    def _on_readable(self, connection: Connection) -> None:
        if not connection.incoming:
            connection.deadline = pace.now() + pace.HEAD_S
        received = connection.receive()
        if received == 0:
            self._close(connection)
        elif received and connection.stage() is not Stage.INCOMPLETE:
            self._unwatch(connection)
            self._begin(connection)

    def _begin(self, connection: Connection) -> None:
        connection.state = State.QUEUED
        if connection.stage() is Stage.STREAMED:
            if self.uploading >= self.most_uploads:
                self.uploads.append(connection)
                connection.deadline = pace.now() + pace.HEAD_S
                return
            self.uploading += 1
        pool = self.probe_pools.get(path_of(connection.incoming), self.tpool)
        connection.begin_request()
        if not connection.streamed:
            connection.wait = Wait(book=self.book, wake=partial(self._wake_later, connection))
        self._submit(pool, connection)

    def _submit(self, pool: Any, connection: Connection) -> None:
        connection.state = State.HANDLED
        if connection.wait is not None:
            connection.wait.fired = connection.wait.asked_to_park = False
        done = pool.submit(self.handle, connection)
        done.add_done_callback(partial(self.method_queue.defer, self._finish, connection))

    def _finish(self, connection: Connection, done: "Future[Any]") -> None:
        """After a thread: the request is answered, or set aside."""
        wait = connection.wait
        if wait is not None and wait.asked_to_park:
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
        self.uploading -= connection.streamed
        self.woken -= connection.was_woken
        connection.was_woken = False

    def _begin_uploads(self) -> None:
        while self.uploads and self.uploading < self.most_uploads:
            connection = self.uploads.popleft()
            if connection.state is not State.CLOSED:
                self._dispatch(self._begin, connection)

    def _flush(self, connection: Connection) -> None:
        if connection.flush():
            self._after_answer(connection)
        else:
            connection.deadline = pace.now() + pace.seconds_for(len(connection.outgoing))
            self._watch(connection, State.FLUSHING, selectors.EVENT_WRITE, self._on_writable)

    def _on_writable(self, connection: Connection) -> None:
        if connection.flush():
            self._unwatch(connection)
            self._after_answer(connection)

    def _after_answer(self, connection: Connection) -> None:
        if connection.keep:
            connection.deadline = pace.now() + (
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
        """From any thread."""
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

    def handle_request(self, req: Any, conn: Connection) -> bool:
        try:
            return bool(super().handle_request(req, conn))
        except ParkedError:
            return True

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answers an address that is too long with a problem document, as the API does all."""
        if not isinstance(exc, LimitRequestLine):
            super().handle_error(req, client, addr, exc)
            return
        self.log.warning("An address is too long: %s", exc)
        client.sendall(answers.TOO_LONG)


def _is_kept(connection: Connection, done: "Future[Any]") -> bool:
    """Whether the client may send its next request on the same connection."""
    if done.cancelled() or done.exception() is not None:
        connection.is_broken = True
        return False
    return bool(done.result())


#: Who has these connections bounds their time.
_UNBOUNDED = frozenset({State.HANDLED, State.CLOSED})
