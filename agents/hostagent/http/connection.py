"""A connection to a server with one deadline for all its operations, including TLS."""

from __future__ import annotations

import contextlib
import io
import select
import socket
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Optional, Union

from ..errors import TrialFailed
from .messages import ResponseError

_FIRST_BYTES = 64


class Connection:
    """`alpn`: the protocol that TLS negotiated, or None. `first`: the first received bytes.

    Its methods raise OSError if the connection breaks or the deadline has passed.
    """

    def __init__(self, sock: Union[socket.socket, ssl.SSLSocket], deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline
        self.tls = isinstance(sock, ssl.SSLSocket)
        self.alpn = sock.selected_alpn_protocol() if isinstance(sock, ssl.SSLSocket) else None
        self.first = b""

    def recv_into(self, buffer: Union[bytearray, memoryview]) -> int:
        self._sock.settimeout(compute_seconds_left(self._deadline))
        count = self._sock.recv_into(buffer)
        if len(self.first) < _FIRST_BYTES:
            self.first += bytes(buffer[: min(count, _FIRST_BYTES)])
        return count

    def recv(self, size: int) -> bytes:
        buffer = bytearray(size)
        return bytes(buffer[: self.recv_into(buffer)])

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(compute_seconds_left(self._deadline))
        self._sock.sendall(data)

    def makefile(self, *_mode: object) -> io.BufferedReader:
        """Return a file for http.client to read from."""
        return io.BufferedReader(_RawReader(self))

    def ends_within(self, seconds: float) -> bool:
        """Return whether the server ends the connection within this time; with TLS unknown, False.

        Call it after a whole response.
        """
        if self.tls or not select.select([self._sock], [], [], seconds)[0]:
            return False
        try:
            return not self._sock.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def abort(self) -> None:
        """End the current operation of another thread, with an OSError there."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._sock.close()


class _RawReader(io.RawIOBase):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._connection.recv_into(buffer)


def open_connection(
    address: str,
    port: int,
    timeout_s: float,
    tls: Optional[ssl.SSLContext] = None,
    alpn: Sequence[str] = (),
) -> Connection:
    """Connect, and with `tls` do a handshake that offers `alpn`.

    OSError without a listener, ResponseError if the handshake fails for good.
    """
    deadline = time.monotonic() + timeout_s
    sock = socket.create_connection((address, port), timeout_s)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is None:
            return Connection(sock, deadline)
        tls.set_alpn_protocols(list(alpn))
        sock.settimeout(compute_seconds_left(deadline))
        return Connection(_wrap_tls(sock, tls, address), deadline)
    except BaseException:
        sock.close()
        raise


def create_tls_context(ca: Optional[Path]) -> ssl.SSLContext:
    """Return a TLS context that trusts the CA of the job, or without one those of the system."""
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except OSError as error:
        raise TrialFailed("internal", f"cannot read the CA of the job {ca}: {error}") from error


def _wrap_tls(sock: socket.socket, tls: ssl.SSLContext, address: str) -> ssl.SSLSocket:
    try:
        return tls.wrap_socket(sock, server_hostname=address)
    except ssl.SSLCertVerificationError as error:
        raise ResponseError(
            f"a certificate that is not valid for {address}: {_get_reason(error)}"
        ) from error
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
        # Which of the two it is depends on the version of Python.
        raise ConnectionResetError("the connection ended in the TLS handshake") from error
    except ssl.SSLError as error:
        raise ResponseError(f"the TLS handshake failed: {_get_reason(error)}") from error


def _get_reason(error: ssl.SSLError) -> str:
    """Return the message of OpenSSL, without the position in its source code."""
    message = getattr(error, "verify_message", None)
    return str(message or error.reason or error).rstrip(".")


def compute_seconds_left(deadline: float) -> float:
    """Return the remaining seconds; TimeoutError after the deadline."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
