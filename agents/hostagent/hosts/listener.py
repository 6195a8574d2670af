"""The listener of a follower: it accepts its lead and closes all other connections."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from typing import Optional

from ..errors import Aborted, PeerLost
from ..platform.ports import get_address_family
from .secure_channel import FOLLOWER, Channel, Handshake, LineBuffer, enable_keepalive

HANDSHAKE_S = 5.0
#: The maximum of unauthenticated connections; a new one replaces the oldest.
MAX_PENDING = 32
POLL_S = 0.2
_OPENING_BYTES = 256


class PendingConnection:
    """A connection that is not authenticated yet."""

    def __init__(self, connection: socket.socket, handshake: Handshake) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.deadline = time.monotonic() + HANDSHAKE_S
        self._handshake = handshake
        self._buffer = LineBuffer(_OPENING_BYTES)
        self._greeting_received = False

    def read_handshake(self) -> Optional[Channel]:
        """Continue the handshake; the channel once it is complete, PeerLost if it fails."""
        data = self.connection.recv(_OPENING_BYTES)
        if not data:
            raise PeerLost("the connection was closed")
        self._buffer.add(data)
        while (line := self._buffer.next()) is not None:
            if self._greeting_received:
                return self._accept_lead(line)
            self._handshake.read_greeting(line)
            self._greeting_received = True
            self.connection.send(self._handshake.greeting())
        return None

    def _accept_lead(self, line: bytes) -> Channel:
        self._handshake.check(line)
        self.connection.send(self._handshake.proof())
        enable_keepalive(self.connection)
        return self._handshake.channel(self.connection)


class FollowerListener:
    """Listens on `address`, on a port that the kernel chooses, until a lead is connected."""

    def __init__(self, address: str, secret: str, scope: str) -> None:
        self._secret = secret
        self._scope = scope
        try:
            self._listener = socket.create_server((address, 0), family=get_address_family(address))
        except OSError as error:
            raise Aborted("internal", f"this host cannot listen on {address}: {error}") from error
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._pending: dict[socket.socket, PendingConnection] = {}

    def accept_lead(self, wait: Callable[[], None]) -> Channel:
        """Return the channel to the lead, and close all others. `wait` is called often, may
        raise."""
        try:
            while True:
                wait()
                for key, _ in self._selector.select(POLL_S):
                    channel = self._handle_event(key.fileobj)  # type: ignore[arg-type]
                    if channel is not None:
                        return channel
                self._close_expired()
        finally:
            self._close_all()

    def _handle_event(self, connection: socket.socket) -> Optional[Channel]:
        if connection is self._listener:
            self._accept_pending()
            return None
        pending = self._pending.get(connection)
        try:
            channel = pending.read_handshake() if pending else None
        except (OSError, PeerLost):
            self._close_pending(connection)
            return None
        if channel is not None:
            self._pending.pop(connection)
            self._selector.unregister(connection)
        return channel

    def _accept_pending(self) -> None:
        with contextlib.suppress(OSError):  # the client may have disconnected
            connection, _ = self._listener.accept()
            if len(self._pending) >= MAX_PENDING:
                self._close_pending(next(iter(self._pending)))
            handshake = Handshake(self._secret, self._scope, FOLLOWER)
            self._pending[connection] = PendingConnection(connection, handshake)
            self._selector.register(connection, selectors.EVENT_READ)

    def _close_expired(self) -> None:
        now = time.monotonic()
        for pending in [pending for pending in self._pending.values() if pending.deadline < now]:
            self._close_pending(pending.connection)

    def _close_pending(self, connection: socket.socket) -> None:
        if self._pending.pop(connection, None):
            self._selector.unregister(connection)
            connection.close()

    def _close_all(self) -> None:
        for connection in list(self._pending):
            self._close_pending(connection)
        self._selector.close()
        self._listener.close()
