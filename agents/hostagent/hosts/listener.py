"""Where a follower waits for its lead: whoever cannot prove to be it is shown out."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from typing import Optional

from ..errors import Aborted, PeerLost
from ..platform.ports import family_of
from .secure_channel import FOLLOWER, Channel, Handshake, Lines, notice_loss

HANDSHAKE_S = 5.0
#: Strangers at a time; the oldest goes when another one comes.
MAX_CALLERS = 32
POLL_S = 0.2
_OPENING_BYTES = 256


class Caller:
    """A connection that has not proven anything yet."""

    def __init__(self, connection: socket.socket, handshake: Handshake) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.deadline = time.monotonic() + HANDSHAKE_S
        self._handshake = handshake
        self._lines = Lines(_OPENING_BYTES)
        self._greeted = False

    def hear(self) -> Optional[Channel]:
        """Read what came; the channel once the caller has proven itself, PeerLost if it cannot."""
        data = self.connection.recv(_OPENING_BYTES)
        if not data:
            raise PeerLost("the caller left")
        self._lines.add(data)
        while (line := self._lines.next()) is not None:
            if self._greeted:
                return self._admit(line)
            self._handshake.greeted(line)
            self._greeted = True
            self.connection.send(self._handshake.greeting())
        return None

    def _admit(self, line: bytes) -> Channel:
        self._handshake.check(line)
        self.connection.send(self._handshake.proof())
        notice_loss(self.connection)
        return self._handshake.channel(self.connection)


class Door:
    """Listens on `address` at a port that the kernel chooses, until one lead is in."""

    def __init__(self, address: str, secret: str, scope: str) -> None:
        self._secret = secret
        self._scope = scope
        try:
            self._listener = socket.create_server((address, 0), family=family_of(address))
        except OSError as error:
            raise Aborted("internal", f"this host cannot listen on {address}: {error}") from error
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._callers: dict[socket.socket, Caller] = {}

    def admit(self, wait: Callable[[], None]) -> Channel:
        """The lead's channel; all else is closed then. `wait` is called often, and may raise."""
        try:
            while True:
                wait()
                for key, _ in self._selector.select(POLL_S):
                    channel = self._attend(key.fileobj)  # type: ignore[arg-type]
                    if channel is not None:
                        return channel
                self._show_out_the_late()
        finally:
            self._close()

    def _attend(self, connection: socket.socket) -> Optional[Channel]:
        if connection is self._listener:
            self._let_in()
            return None
        caller = self._callers.get(connection)
        try:
            channel = caller.hear() if caller else None
        except (OSError, PeerLost):
            self._show_out(connection)
            return None
        if channel is not None:
            self._callers.pop(connection)
            self._selector.unregister(connection)
        return channel

    def _let_in(self) -> None:
        with contextlib.suppress(OSError):  # it may be gone again
            connection, _ = self._listener.accept()
            if len(self._callers) >= MAX_CALLERS:
                self._show_out(next(iter(self._callers)))
            handshake = Handshake(self._secret, self._scope, FOLLOWER)
            self._callers[connection] = Caller(connection, handshake)
            self._selector.register(connection, selectors.EVENT_READ)

    def _show_out_the_late(self) -> None:
        now = time.monotonic()
        for caller in [caller for caller in self._callers.values() if caller.deadline < now]:
            self._show_out(caller.connection)

    def _show_out(self, connection: socket.socket) -> None:
        if self._callers.pop(connection, None):
            self._selector.unregister(connection)
            connection.close()

    def _close(self) -> None:
        for connection in list(self._callers):
            self._show_out(connection)
        self._selector.close()
        self._listener.close()
