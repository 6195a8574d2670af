"""A client's connection, with bytes that are not handled and bytes that are not sent yet."""

import contextlib
import errno
import select
import socket
from enum import Enum, auto
from typing import Any

from gunicorn import http

from orchestrator.core.waits import Wait
from orchestrator.operations.stuck_threads import BUSY
from orchestrator.serving import pace
from orchestrator.serving.framing import CONTINUE, Frame, Stage, parse_frame
from orchestrator.serving.shares import Share, Shares

_PIECE_BYTES = 64 * 1024


class State(Enum):
    """The poller owns the connection, except in HANDLED (a thread) and CLOSED (nobody)."""

    READING = auto()
    HANDLED = auto()
    QUEUED = auto()
    PARKED = auto()
    FLUSHING = auto()
    LINGERING = auto()
    CLOSED = auto()


class Connection:
    """The connection object for gunicorn's `handle`, over a socket that never blocks.

    It belongs to the worker's main thread, and to one other thread while that handles a request.
    """

    #: Attributes of gunicorn's own connections: whether to wait for the first byte, whether it is
    #: HTTP/2.
    initialized, data_ready, is_http2 = True, True, False

    def __init__(
        self, cfg: Any, raw: socket.socket, client: Any, server: Any, shares: Shares, owner: str
    ) -> None:
        raw.setblocking(False)
        with contextlib.suppress(OSError):  # of a UNIX socket
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, pace.KERNEL_UNSENT_BYTES)
        self.cfg, self.raw, self.client, self.server = cfg, raw, client, server
        self.shares = shares
        #: The client whose shares it takes; changed only between requests.
        self.owner = owner
        self.places: list[Share] = []
        #: When it was accepted, when its last request began to arrive, or when its last answer was
        #: sent.
        self.since = pace.now()
        self.state = State.READING
        self.deadline = pace.now() + pace.SILENT_S
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.frame: Frame | None = None
        self.request = b""
        self.streamed = False
        self.is_broken = self.was_woken = False
        self.keep = False
        self.wait: Wait | None = None
        self.sock = Channel(self)
        self.parser: Any = None

    def init(self) -> None:
        """Do nothing: gunicorn calls it before each request, after `begin_request`."""

    # In the main thread.

    def receive(self) -> int | None:
        """Return how many bytes arrived; 0 if the client is gone, None if there are none yet."""
        try:
            data = self.raw.recv(_PIECE_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return 0
        self.incoming += data
        if self.frame is not None and self.frame.has_head:
            self.deadline = pace.extend_deadline(self.deadline, len(data))
        return len(data)

    def stage(self) -> Stage:
        """Return the stage of the first request in `incoming`.

        A body may take longer than its head.

        Raise OSError if the client is gone.
        """
        before = self.frame
        if before is None or len(self.incoming) >= before.size:
            self.frame = before = parse_frame(self.incoming)
            if before.has_head and before.stage is Stage.INCOMPLETE:
                self.deadline = pace.now() + pace.GRACE_S
                if before.expects:
                    self.raw.send(CONTINUE)
        return before.stage

    def take_place(self, share: Share) -> bool:
        """Take a place of `share` and return True if its owner may have one.

        `free_places` returns all.
        """
        if not share.take(self.owner):
            return False
        self.places.append(share)
        return True

    def free_places(self) -> None:
        while self.places:
            self.places.pop().free(self.owner)

    def begin_request(self) -> bool:
        """Take the first request out of `incoming`, for a thread to handle, and return True.

        Return False, and take nothing, if its owner or the process has reached the limit of request
        bytes.
        """
        assert self.frame is not None
        streamed = self.frame.stage is Stage.STREAMED
        size = len(self.incoming) if streamed else self.frame.size
        if not self.shares.request_bytes.take(self.owner, size):
            return False
        self.streamed = streamed
        self.request = bytes(self.incoming[:size])
        del self.incoming[:size]
        self.sock.feed(self.request, streamed=self.streamed)
        self.frame = None
        self.parser = http.get_parser(self.cfg, self.sock, self.client)
        return True

    def repeat_request(self) -> None:
        """Prepare the same request to be handled once more."""
        self.sock.feed(self.request, streamed=False)
        self.parser = http.get_parser(self.cfg, self.sock, self.client)

    def end_request(self) -> None:
        """Put bytes that a streamed request left over back into `incoming`, for the next one."""
        if self.streamed and self.parser is not None:
            self.incoming[:0] = self.parser.unreader.take_buffered() + self.sock.rest()
        self._drop_request()
        self.parser, self.streamed = None, False

    def _drop_request(self) -> None:
        self.shares.request_bytes.free(self.owner, len(self.request))
        self.request = b""

    def put(self, data: bytes) -> None:
        """Add data to what is sent to the client."""
        self.outgoing += data
        self.shares.outgoing.take_anyway(self.owner, len(data))

    def flush(self) -> bool:
        """Send what the client accepts now; return True once all is sent.

        Raise OSError if it is gone.
        """
        while self.outgoing:
            try:
                sent = self.raw.send(self.outgoing[:_PIECE_BYTES])
            except (BlockingIOError, InterruptedError):
                return False
            del self.outgoing[:sent]
            self.shares.outgoing.free(self.owner, sent)
        return True

    def half_close(self) -> None:
        with contextlib.suppress(OSError):
            self.raw.shutdown(socket.SHUT_WR)

    def close(self, graceful: bool = False) -> None:
        """Close at once; unsent data is lost."""
        self.state = State.CLOSED
        self.shares.outgoing.free(self.owner, len(self.outgoing))
        self.outgoing.clear()
        self.free_places()
        self._drop_request()
        with contextlib.suppress(OSError):
            self.raw.close()


class Channel:
    """The socket of one request for gunicorn: it yields no byte beyond the request.

    It accepts an answer without waiting for the client as long as there is room in the buffer.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._given = memoryview(b"")
        self._streamed = False
        self._timeout: float | None = None
        #: How long the client may let a thread wait from now on. Only waiting counts: the time that
        #: the view needs does not.
        self._patience_s = 0.0

    def feed(self, request: bytes, *, streamed: bool) -> None:
        self._given, self._streamed = memoryview(request), streamed
        self._patience_s = pace.GRACE_S

    def rest(self) -> bytes:
        rest, self._given = bytes(self._given), memoryview(b"")
        return rest

    def recv(self, size: int) -> bytes:
        """Return b"" at the end of the request.

        Raise ConnectionResetError if a body arrives too slowly.
        """
        if self._given:
            data, self._given = bytes(self._given[:size]), self._given[size:]
            return data
        return self._receive(size) if self._streamed else b""

    def _receive(self, size: int) -> bytes:
        raw = self.connection.raw
        until = pace.now() + self._patience_s
        while True:
            with contextlib.suppress(BlockingIOError, InterruptedError):
                data = raw.recv(size)
                self._patience_s = pace.extend_deadline(until, len(data)) - pace.now()
                BUSY.note_progress()
                return data
            left = until - pace.now()
            patience = left if self._timeout is None else min(left, self._timeout)
            if not _is_ready(raw, select.POLLIN, patience):
                self._patience_s = until - pace.now()
                if patience < left:
                    raise TimeoutError("no byte arrived in time")
                raise ConnectionResetError(errno.ECONNRESET, "the request arrives too slowly")

    def sendall(self, data: bytes) -> None:
        """Raise BrokenPipeError if the client is gone, or reads its answer too slowly."""
        connection = self.connection
        connection.put(data)
        try:
            is_sent = connection.flush()
            BUSY.note_progress()
            if not is_sent and len(connection.outgoing) > self._room():
                self._wait_for_client()
        except OSError:
            connection.is_broken = True
            raise

    def _room(self) -> int:
        connection = self.connection
        is_full = connection.shares.outgoing.is_full_for(connection.owner)
        return pace.LEAST_UNSENT_BYTES if is_full else pace.MOST_UNSENT_BYTES

    def _wait_for_client(self) -> None:
        """Wait until the buffer has room again.

        Few threads may wait at once, per client and in total.
        """
        connection = self.connection
        if not connection.shares.slow.take(connection.owner):
            raise BrokenPipeError(errno.EPIPE, "too many clients read their answers slowly")
        until = pace.now() + self._patience_s
        try:
            while (unsent := len(connection.outgoing)) > self._room() // 2:
                if not _is_ready(connection.raw, select.POLLOUT, until - pace.now()):
                    raise BrokenPipeError(errno.EPIPE, "the client reads its answer too slowly")
                connection.flush()
                until = pace.extend_deadline(until, unsent - len(connection.outgoing))
                BUSY.note_progress()
        finally:
            self._patience_s = until - pace.now()
            connection.shares.slow.free(connection.owner)

    def send(self, data: bytes) -> int:
        """Leave out gunicorn's own CONTINUE if the body has already arrived."""
        if data != CONTINUE or self._streamed:
            self.sendall(data)
        return len(data)

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        self._timeout = None

    def fileno(self) -> int:
        return self.connection.raw.fileno()

    def shutdown(self, how: int) -> None:
        """Do nothing: the main thread closes the socket once all is sent."""

    def close(self) -> None:
        """Do nothing, as in `shutdown`."""


def _is_ready(raw: socket.socket, event: int, patience_s: float) -> bool:
    if patience_s <= 0:
        return False
    poll = select.poll()
    poll.register(raw, event)
    return bool(poll.poll(1000 * patience_s))
