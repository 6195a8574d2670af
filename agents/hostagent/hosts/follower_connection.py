"""A follower as the lead sees it: a place where parts run, asked over its line."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any, Optional

from ..errors import AgentError, PeerLost, TrialFailed
from ..step.plan import Host
from .secure_channel import LEAD, Channel, Handshake, Lines, notice_loss

CONNECT_TIMEOUT_S = 10.0
#: An answer may take as long as a part's end with grace does; a ping has no reason to take any.
CALL_TIMEOUT_S = 30.0
LOST_AFTER_S = 5.0
PING_EVERY_S = 1.0
#: A ping's answer is waited for this long, so that the gap of a healthy line is told in full.
_AT_ONCE_S = 0.02
_SLICE_S = 0.1


def connect(label: str, host: Host, secret: str, scope: str) -> Peer:
    """The follower, proven to be the one of this job; PeerLost with its name where it is not."""
    try:
        connection = socket.create_connection(
            (host.address, host.port or 0), timeout=CONNECT_TIMEOUT_S
        )
        return Peer(label, host.address, _open(connection, Handshake(secret, scope, LEAD)))
    except (OSError, PeerLost) as error:
        raise PeerLost(
            f"host {label} ({host.address}:{host.port}) cannot be led: {error}"
        ) from error


def _open(connection: socket.socket, handshake: Handshake) -> Channel:
    notice_loss(connection)
    lines = Lines(1024)
    try:
        connection.sendall(handshake.greeting())
        handshake.greeted(_line(connection, lines))
        connection.sendall(handshake.proof())
        handshake.check(_line(connection, lines))
    except BaseException:
        connection.close()
        raise
    return handshake.channel(connection)


def _line(connection: socket.socket, lines: Lines) -> bytes:
    while (line := lines.next()) is None:
        data = connection.recv(1024)
        if not data:
            raise PeerLost("it refused the secret, or has a lead already")
        lines.add(data)
    return line


class Peer:
    """Calls one follower; `pulse` keeps in touch between calls. PeerLost is final."""

    def __init__(self, label: str, address: str, channel: Channel) -> None:
        self.label = label
        self.address = address
        self.gap_s = 0.0
        self._channel = channel
        self._calling = False
        self._asked: Optional[float] = None
        self._heard = time.monotonic()

    def call(self, name: str, beat: Callable[[], None], **words: Any) -> dict[str, Any]:
        """The answer. TrialFailed or AgentError where the follower tells of one."""
        self._calling = True
        try:
            self._await(LOST_AFTER_S, beat)
            self._ask({"call": name, **words})
            answer = self._await(CALL_TIMEOUT_S, beat)
        except PeerLost as lost:
            raise self._lost(lost) from lost
        finally:
            self._calling = False
        error = answer.get("error")
        if error is None:
            found: dict[str, Any] = answer["answer"]
            return found
        if error["code"] == "internal":
            raise AgentError(f"host {self.label}: {error['message']}")
        raise TrialFailed(error["code"], f"host {self.label}: {error['message']}", error["output"])

    def pulse(self) -> None:
        """Ask for a sign of life once a second, and take it when it comes; never waits for long."""
        if self._calling:
            return
        try:
            self._ping()
        except PeerLost as lost:
            raise self._lost(lost) from lost

    def _ping(self) -> None:
        if self._asked is not None:
            self._hear(0)
        elif time.monotonic() - self._heard >= PING_EVERY_S:
            self._ask({"call": "ping"})
            self._hear(_AT_ONCE_S)
        if self._waited() > LOST_AFTER_S:
            raise PeerLost(f"no answer for {LOST_AFTER_S:g} s")

    def forget_gap(self) -> None:
        self.gap_s = 0.0

    def longest_gap(self) -> float:
        return max(self.gap_s, self._waited())

    def close(self) -> None:
        self._channel.close()

    def _waited(self) -> float:
        return 0.0 if self._asked is None else time.monotonic() - self._asked

    def _ask(self, message: dict[str, Any]) -> None:
        self._channel.send(message)
        self._asked = time.monotonic()

    def _hear(self, timeout_s: float) -> Optional[dict[str, Any]]:
        answer = self._channel.receive(timeout_s)
        if answer is not None:
            self.gap_s = max(self.gap_s, self._waited())
            self._asked, self._heard = None, time.monotonic()
        return answer

    def _await(self, limit_s: float, beat: Callable[[], None]) -> dict[str, Any]:
        """The answer to what was asked, {} where nothing was."""
        while self._asked is not None:
            answer = self._hear(_SLICE_S)
            if answer is not None:
                return answer
            if self._waited() > limit_s:
                raise PeerLost(f"no answer for {limit_s:g} s")
            beat()
        return {}

    def _lost(self, why: PeerLost) -> PeerLost:
        return PeerLost(f"lost host {self.label} ({self.address}): {why.message}")
