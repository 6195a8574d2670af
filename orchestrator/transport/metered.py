"""A socket to a host that takes no more bytes than were asked for.

paramiko keeps whatever a server sends: a reply longer than the request, a packet of 4 GiB, data
for a channel beyond its window, a banner without an end. Here it all comes from one socket, and
each verb says how much may come until the next one.
"""

import socket
import threading
from typing import Any

from paramiko import SSHException
from paramiko.packet import Packetizer

#: More than any packet that we let a server send; OpenSSH's own limit.
MOST_PACKET_BYTES = 256 * 1024
#: What a handshake, a login and a few replies of SFTP need, and an idle connection as well.
BESIDE_BYTES = 1024 * 1024


class MeteredSocket:
    """A socket for paramiko; after `allow(n)` so many bytes may come, and those beside."""

    def __init__(self, inner: socket.socket) -> None:
        self._inner = inner
        # paramiko reads in a thread of its own while a verb says how much may come.
        self._lock = threading.Lock()
        self._left = BESIDE_BYTES

    def allow(self, count: int) -> None:
        with self._lock:
            self._left = count + BESIDE_BYTES

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


class BoundedPacketizer(Packetizer):
    """Packets of a usual size; paramiko itself takes up to 4 GiB for one."""

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        if n > MOST_PACKET_BYTES:
            raise SSHException(f"the host sent a packet of {n} bytes")
        return super().read_all(n, check_rekey)
