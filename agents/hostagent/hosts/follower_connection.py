"""The connection of the lead to one follower: calls, answers, pings."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any, Optional

from ..errors import AgentError, PeerLost, TrialFailed
from ..step.plan import Host
from .secure_channel import LEAD, Channel, Handshake, LineBuffer, enable_keepalive

CONNECT_TIMEOUT_S = 10.0
#: A call may take as long as a graceful stop of a process; the answer to a ping may not.
CALL_TIMEOUT_S = 30.0
LOST_AFTER_S = 5.0
PING_EVERY_S = 1.0
#: How long to wait for the answer to a ping, so that the gap of a healthy connection is complete.
_PING_WAIT_S = 0.02
_SLICE_S = 0.1


def connect(label: str, host: Host, secret: str, scope: str) -> FollowerConnection:
    """Connect to the follower of this job; PeerLost with its name if the handshake fails."""
    try:
        connection = socket.create_connection(
            (host.address, host.port or 0), timeout=CONNECT_TIMEOUT_S
        )
        return FollowerConnection(
            label, host.address, _shake_hands(connection, Handshake(secret, scope, LEAD))
        )
    except (OSError, PeerLost) as error:
        raise PeerLost(
            f"cannot connect to the agent of host {label} ({host.address}:{host.port}): {error}"
        ) from error


def _shake_hands(connection: socket.socket, handshake: Handshake) -> Channel:
    enable_keepalive(connection)
    lines = LineBuffer(1024)
    try:
        connection.sendall(handshake.greeting())
        handshake.read_greeting(_receive_line(connection, lines))
        connection.sendall(handshake.proof())
        handshake.check(_receive_line(connection, lines))
    except BaseException:
        connection.close()
        raise
    return handshake.channel(connection)


def _receive_line(connection: socket.socket, lines: LineBuffer) -> bytes:
    while (line := lines.next()) is None:
        data = connection.recv(1024)
        if not data:
            raise PeerLost("it refused the secret, or already has a lead")
        lines.add(data)
    return line


class FollowerConnection:
    """Calls one follower; `heartbeat` sends pings between calls. PeerLost is final."""

    def __init__(self, label: str, address: str, channel: Channel) -> None:
        self.label = label
        self.address = address
        self.gap_s = 0.0
        self._channel = channel
        self._calling = False
        self._sent_at: Optional[float] = None
        self._received_at = time.monotonic()

    def call(self, name: str, heartbeat: Callable[[], None], **arguments: Any) -> dict[str, Any]:
        """Return the answer. TrialFailed or AgentError if the follower reports one."""
        self._calling = True
        try:
            self._await_answer(LOST_AFTER_S, heartbeat)
            self._send({"call": name, **arguments})
            answer = self._await_answer(CALL_TIMEOUT_S, heartbeat)
        except PeerLost as lost:
            raise self._name_host(lost) from lost
        finally:
            self._calling = False
        error = answer.get("error")
        if error is None:
            value: dict[str, Any] = answer["answer"]
            return value
        if error["code"] == "internal":
            raise AgentError(f"host {self.label}: {error['message']}")
        raise TrialFailed(error["code"], f"host {self.label}: {error['message']}", error["output"])

    def heartbeat(self) -> None:
        """Send a ping once per second, and read its answer; never waits long."""
        if self._calling:
            return
        try:
            self._ping()
        except PeerLost as lost:
            raise self._name_host(lost) from lost

    def _ping(self) -> None:
        if self._sent_at is not None:
            self._receive(0)
        elif time.monotonic() - self._received_at >= PING_EVERY_S:
            self._send({"call": "ping"})
            self._receive(_PING_WAIT_S)
        if self._waiting_s() > LOST_AFTER_S:
            raise PeerLost(f"no answer for {LOST_AFTER_S:g} s")

    def reset_gap(self) -> None:
        self.gap_s = 0.0

    def longest_gap(self) -> float:
        return max(self.gap_s, self._waiting_s())

    def close(self) -> None:
        self._channel.close()

    def _waiting_s(self) -> float:
        return 0.0 if self._sent_at is None else time.monotonic() - self._sent_at

    def _send(self, message: dict[str, Any]) -> None:
        self._channel.send(message)
        self._sent_at = time.monotonic()

    def _receive(self, timeout_s: float) -> Optional[dict[str, Any]]:
        answer = self._channel.receive(timeout_s)
        if answer is not None:
            self.gap_s = max(self.gap_s, self._waiting_s())
            self._sent_at, self._received_at = None, time.monotonic()
        return answer

    def _await_answer(self, limit_s: float, heartbeat: Callable[[], None]) -> dict[str, Any]:
        """Return the answer to the pending call, {} if there is none."""
        while self._sent_at is not None:
            answer = self._receive(_SLICE_S)
            if answer is not None:
                return answer
            if self._waiting_s() > limit_s:
                raise PeerLost(f"no answer for {limit_s:g} s")
            heartbeat()
        return {}

    def _name_host(self, why: PeerLost) -> PeerLost:
        return PeerLost(f"lost host {self.label} ({self.address}): {why.message}")
