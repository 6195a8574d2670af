"""The channel between the lead and a follower: a handshake, then authenticated messages.

    lead      {"nonce": N1}
    follower  {"nonce": N2}
    lead      {"proof": HMAC(secret, "proof of the lead", scope, N1, N2)}
    follower  {"proof": HMAC(secret, "proof of the follower", scope, N1, N2)}
    either    MAC " " JSON                                   one message per line from here on

`scope` contains job, step and the follower's label, so that no connection can be redirected to
another host. MAC = HMAC(key of the direction, number of the message, JSON) in hexadecimal; both
keys are derived from the secret, the scope and both nonces. So a message that was changed,
repeated, omitted or reflected is invalid. Messages are not encrypted: they carry commands,
measurements and tails of logs.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import select
import socket
from typing import Any, Optional

from ..errors import PeerLost

LEAD, FOLLOWER = "the lead", "the follower"
#: Enough for the samples of a load of ten hours.
MAX_LINE = 8 << 20
SEND_TIMEOUT_S = 10.0
_RECEIVE_BYTES = 1 << 16
#: Seconds of idle time, seconds between probes, number of probes without an answer.
_KEEPALIVE = (3, 2, 3)
_USER_TIMEOUT_MS = 8000


class Handshake:
    """One side of the handshake: its messages, and the check of the other side's."""

    def __init__(self, secret: str, scope: str, me: str) -> None:
        self._secret = bytes.fromhex(secret)
        self._scope = scope
        self._me = me
        self._nonce = os.urandom(32).hex()
        self._nonces: tuple[str, str] = ("", "")

    def greeting(self) -> bytes:
        return _encode_line({"nonce": self._nonce})

    def read_greeting(self, line: bytes) -> None:
        other = _parse_field(line, "nonce")
        lead_first = (self._nonce, other) if self._me == LEAD else (other, self._nonce)
        self._nonces = lead_first

    def proof(self) -> bytes:
        return _encode_line({"proof": self._derive(f"proof of {self._me}").hex()})

    def check(self, line: bytes) -> None:
        """Raise PeerLost unless the other side knows the secret."""
        expected = self._derive(f"proof of {self._other}").hex()
        if not hmac.compare_digest(_parse_field(line, "proof").encode(), expected.encode()):
            raise PeerLost("the other side does not know this job's secret")

    def channel(self, connection: socket.socket) -> Channel:
        """Return the channel; call this after both proofs."""
        return Channel(
            connection, self._derive(f"key of {self._me}"), self._derive(f"key of {self._other}")
        )

    @property
    def _other(self) -> str:
        return FOLLOWER if self._me == LEAD else LEAD

    def _derive(self, purpose: str) -> bytes:
        message = "\n".join((purpose, self._scope, *self._nonces))
        return hmac.new(self._secret, message.encode(), hashlib.sha256).digest()


class LineBuffer:
    """Splits received data into lines."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self._data += data

    def next(self) -> Optional[bytes]:
        """Return the next complete line, or None; PeerLost if it is, or will be, too long."""
        end = self._data.find(b"\n")
        if (len(self._data) if end < 0 else end) > self._limit:
            raise PeerLost("a message is too long")
        if end < 0:
            return None
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        return line


class Channel:
    """Authenticated messages over one connection. Any error raises PeerLost and is final."""

    def __init__(self, connection: socket.socket, send_key: bytes, receive_key: bytes) -> None:
        self._connection = connection
        self._connection.settimeout(SEND_TIMEOUT_S)
        self._buffer = LineBuffer(MAX_LINE)
        self._send_key, self._sent = send_key, 0
        self._receive_key, self._received = receive_key, 0

    def send(self, message: dict[str, Any]) -> None:
        text = json.dumps(message).encode()
        line = _sign(self._send_key, self._sent, text).encode() + b" " + text + b"\n"
        self._sent += 1
        try:
            self._connection.sendall(line)
        except OSError as error:
            raise PeerLost(f"the connection broke ({error})") from error

    def receive(self, timeout_s: float) -> Optional[dict[str, Any]]:
        """Return the next message; None if none arrived within the time."""
        line = self._buffer.next()
        while line is None:
            readable, _, _ = select.select([self._connection], [], [], timeout_s)
            if not readable:
                return None
            self._buffer.add(self._read())
            line = self._buffer.next()
        return self._open(line)

    def _read(self) -> bytes:
        try:
            data = self._connection.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise PeerLost(f"the connection broke ({error})") from error
        if not data:
            raise PeerLost("the connection was closed")
        return data

    def _open(self, line: bytes) -> dict[str, Any]:
        signature, _, text = line.partition(b" ")
        expected = _sign(self._receive_key, self._received, text).encode()
        if not hmac.compare_digest(signature, expected):
            raise PeerLost("a message was not authentic")
        self._received += 1
        message = json.loads(text)
        if not isinstance(message, dict):
            raise PeerLost("a message is not a JSON object")
        return message

    def close(self) -> None:
        self._connection.close()


def build_scope(job: str, step: str, follower: str) -> str:
    return f"{job}/{step}/{follower}"


def enable_keepalive(connection: socket.socket) -> None:
    """Let the kernel detect within seconds that the other host is gone, as far as it can."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle, interval, count = _KEEPALIVE
    for name, value in (
        ("TCP_KEEPIDLE", idle),
        ("TCP_KEEPALIVE", idle),  # macOS calls it so
        ("TCP_KEEPINTVL", interval),
        ("TCP_KEEPCNT", count),
        ("TCP_USER_TIMEOUT", _USER_TIMEOUT_MS),
    ):
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _sign(key: bytes, number: int, text: bytes) -> str:
    return hmac.new(key, number.to_bytes(8, "big") + text, hashlib.sha256).hexdigest()


def _encode_line(message: dict[str, str]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _parse_field(line: bytes, name: str) -> str:
    """Return the 64 hexadecimal digits of a line of the handshake."""
    try:
        text = json.loads(line)[name]
        if len(text) == 64 and bytes.fromhex(text):
            return str(text)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise PeerLost("the other side does not speak the protocol of the agent")
