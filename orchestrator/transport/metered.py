"""A socket that limits how many bytes a host may send.

paramiko stores whatever a server sends: a reply longer than the request, a packet of 4 GiB, data
for a channel beyond its window, an endless banner. All of it passes through this socket, and each
verb sets how much may arrive until the next one.
"""

import contextlib
import socket
import threading
from typing import Any

from paramiko import Channel, SSHException, Transport
from paramiko.packet import Packetizer

#: More than any packet that we let a server send; OpenSSH's own limit.
MOST_PACKET_BYTES = 256 * 1024
#: Enough for a handshake, a login, a few replies of SFTP and an idle connection.
BESIDE_BYTES = 1024 * 1024


class MeteredSocket:
    """A socket for paramiko.

    After `allow(n)` it accepts n bytes in addition to a fixed allowance. `via`: the socket of the
    jump host that the data pass, and which has to accept them as well.
    """

    def __init__(self, inner: socket.socket, via: "MeteredSocket | None" = None) -> None:
        self._inner = inner
        self._via = via
        # paramiko reads in a separate thread while a verb sets the limit.
        self._lock = threading.Lock()
        self._left = BESIDE_BYTES

    def allow(self, count: int) -> None:
        with self._lock:
            self._left = count + BESIDE_BYTES
        if self._via is not None:
            # Small packets take at most twice the space in a tunnel.
            self._via.allow(2 * (count + BESIDE_BYTES))

    def close(self) -> None:
        """Close the socket, and wake the thread of paramiko that reads from it."""
        with contextlib.suppress(OSError):
            self._inner.shutdown(socket.SHUT_RDWR)
        self._inner.close()

    @property
    def is_exceeded(self) -> bool:
        return self._left < 0

    def recv(self, count: int) -> bytes:
        data = self._inner.recv(min(count, MOST_PACKET_BYTES))
        with self._lock:
            self._left -= len(data)
            exceeded = self._left < 0
        if exceeded:
            raise SSHException("the host sent more than it was asked for")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class TunnelSocket:
    """A channel of a jump host in place of a socket; closing it ends the jump host's connection."""

    def __init__(self, channel: Channel, connection: Transport) -> None:
        self._channel = channel
        self._connection = connection

    def shutdown(self, how: int) -> None:
        """Do nothing: `close` ends all."""

    def close(self) -> None:
        # It closes its channels as well; to close one first fails if the jump host is lost.
        self._connection.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


class BoundedPacketizer(Packetizer):
    """Limits packets to a usual size; paramiko itself accepts up to 4 GiB."""

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        if n > MOST_PACKET_BYTES:
            raise SSHException(f"the host sent a packet of {n} bytes")
        return super().read_all(n, check_rekey)
