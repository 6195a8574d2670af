"""A relay on loopback that leads to one checked server.

A program that parses addresses by itself, such as git with curl or ssh, may connect to another host
than the one that we checked. It gets the relay's address instead. The relay resolves the name once,
checks all its addresses, and connects only to those, whatever the program asks for.
"""

import contextlib
import ipaddress
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

CONNECT_TIMEOUT_S = 10.0
#: A connection is closed if it moves no data in either direction for so long.
IDLE_S = 120.0
#: A connection with a limit `slow_s` is also closed if it moves less than this during that time.
#: The time should not be below SLOW_S: a server that counts the objects of a large repository sends
#: only progress for minutes.
SLOW_BYTES_S = 1000
SLOW_S = 300.0
#: git opens one connection, or a handful if it fetches file by file.
MOST_CONNECTIONS = 16
_CHUNK_BYTES = 1 << 16
_POLL_S = 5.0
_GRANTED = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
_NOT_ALLOWED = b"\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"
_UNREACHABLE = b"\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00"


class Relay:
    """Leads from `127.0.0.1:port` to one of the `addresses` of `host` at `host_port`.

    With `socks` it speaks SOCKS5 and refuses every other host and port. Without it, every
    connection is led there. `slow_s`: None if only silence ends a connection. As a context manager
    it closes everything at its end.
    """

    def __init__(
        self,
        host: str,
        host_port: int,
        addresses: Sequence[str],
        *,
        socks: bool,
        idle_s: float = IDLE_S,
        slow_s: float | None = SLOW_S,
    ) -> None:
        self._wanted = (_normalise_host(host), host_port)
        self._addresses, self._socks = list(addresses), socks
        self._idle_s, self._slow_s = idle_s, slow_s
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._room = threading.Semaphore(MOST_CONNECTIONS)
        self.problem = ""

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="relay", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._closed = True
            left = list(self._sockets)
        for sock in (self._listener, *left):
            # This wakes up a thread that waits for it.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with self._held(client):
                client.settimeout(CONNECT_TIMEOUT_S)
                if self._socks and not self._is_requested(client):
                    client.sendall(_NOT_ALLOWED)
                    return
                server = self._connect()
                if server is None:
                    if self._socks:
                        client.sendall(_UNREACHABLE)
                    return
                with self._held(server):
                    if self._socks:
                        client.sendall(_GRANTED)
                    self._join(client, server)
        except (OSError, EOFError):
            pass
        finally:
            self._room.release()

    def _is_requested(self, client: socket.socket) -> bool:
        """Return whether the program asks for the one host, by SOCKS5 (RFC 1928)."""
        version, methods = _read_exactly(client, 2)
        _read_exactly(client, methods)
        if version != 5:
            return False
        client.sendall(b"\x05\x00")
        _, command, _, kind = _read_exactly(client, 4)
        length = {1: 4, 4: 16}.get(kind)
        name = _read_exactly(client, length if length else _read_exactly(client, 1)[0])
        (port,) = struct.unpack(">H", _read_exactly(client, 2))
        host = str(ipaddress.ip_address(name)) if length else name.decode("ascii", "replace")
        destination = (_normalise_host(host), port)
        if destination != self._wanted:
            self.problem = f"git asked for {host[:100]}:{port}, which is not the repository's host"
        return command == 1 and destination == self._wanted

    def _connect(self) -> socket.socket | None:
        for address in self._addresses:
            try:
                return socket.create_connection((address, self._wanted[1]), CONNECT_TIMEOUT_S)
            except OSError as error:
                self.problem = f"{address} cannot be reached: {error.strerror or error}"
        return None

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        traffic = _Traffic(self._idle_s, self._slow_s, self._note_problem)
        back = threading.Thread(target=_pump, args=[server, client, traffic], daemon=True)
        for sock in (client, server):
            sock.settimeout(min(_POLL_S, self._idle_s, self._slow_s or _POLL_S))
        back.start()
        _pump(client, server, traffic)
        back.join()

    def _note_problem(self, problem: str) -> None:
        self.problem = problem

    @contextlib.contextmanager
    def _held(self, sock: socket.socket) -> Iterator[None]:
        """Close the socket at the end of the block. It is shut down earlier if the relay ends."""
        with sock:
            with self._lock:
                if self._closed:
                    raise OSError("the relay has ended")
                self._sockets.add(sock)
            try:
                yield
            finally:
                with self._lock:
                    self._sockets.discard(sock)


class _Traffic:
    """The bytes moved in either direction, and whether they suffice."""

    def __init__(self, idle_s: float, slow_s: float | None, report: Callable[[str], None]) -> None:
        self._idle_s, self._slow_s, self._report = idle_s, slow_s, report
        self._lock = threading.Lock()
        self._moved_at = self._since = time.monotonic()
        self._bytes = 0

    def add(self, count: int) -> None:
        with self._lock:
            self._moved_at = time.monotonic()
            self._bytes += count

    def check(self) -> None:
        """Raise TimeoutError if no data, or too little, was moved."""
        with self._lock:
            now = time.monotonic()
            if now - self._moved_at > self._idle_s:
                self._report(f"nothing was sent for {self._idle_s:g} s")
                raise TimeoutError
            if self._slow_s is None or now - self._since < self._slow_s:
                return
            if self._bytes < SLOW_BYTES_S * self._slow_s:
                self._report(
                    f"less than {SLOW_BYTES_S} bytes a second were sent for {self._slow_s:g} s"
                )
                raise TimeoutError
            self._since, self._bytes = now, 0


def _pump(source: socket.socket, target: socket.socket, traffic: _Traffic) -> None:
    """Copy data until one side ends or `traffic` raises."""
    try:
        while True:
            traffic.check()
            try:
                data = source.recv(_CHUNK_BYTES)
            except TimeoutError:
                continue
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            traffic.add(len(data))
            _send(target, data, traffic)
    except OSError:
        pass
    for sock in (source, target):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _send(target: socket.socket, data: bytes, traffic: _Traffic) -> None:
    left = memoryview(data)
    while left:
        traffic.check()
        with contextlib.suppress(TimeoutError):
            count = target.send(left)
            left = left[count:]
            traffic.add(count)


def _read_exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _normalise_host(host: str) -> str:
    """Return a normalised form of a name or address, for comparison."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name
