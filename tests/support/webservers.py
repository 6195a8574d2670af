"""Small real servers, each on its own port: HTTP/1.1 and HTTP/2, correct or broken."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from orchestrator.dispatch.tls import Certificates

LOOPBACK = "127.0.0.1"
#: Talks to one client until it disconnects.
Speak = Callable[[socket.socket], None]
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`declared`: the content-length, if it is not the body's."""

    status: int = 200
    headers: Headers = ()
    body: bytes = b""
    trailers: Headers = ()
    declared: int | None = None
    reset: bool = False

    @property
    def length(self) -> int:
        return len(self.body) if self.declared is None else self.declared


@dataclass(slots=True, kw_only=True)
class ReceivedRequest:
    """A request to a server; `headers` with names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass(slots=True)
class Site:
    """The answers by path (else 404), and the requests so far."""

    replies: Mapping[str, Reply]
    requests: list[ReceivedRequest] = field(default_factory=list)

    def reply(self, request: ReceivedRequest) -> Reply:
        self.requests.append(request)
        return self.replies.get(request.path, Reply(status=404, body=b"no such page"))


@contextlib.contextmanager
def serving(
    speak: Speak, tls: ssl.SSLContext | None = None, address: str = LOOPBACK
) -> Iterator[int]:
    """Yield the port on which `speak` talks to each client, with `tls` after a handshake."""
    clients: list[socket.socket] = []
    threads: list[threading.Thread] = []
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            clients.append(client)
            threads.append(threading.Thread(target=_talk, args=(client, speak, tls)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        _end(listener)
        accepting.join()
        for client in clients:
            _end(client)
        for thread in threads:
            thread.join()


def _talk(client: socket.socket, speak: Speak, tls: ssl.SSLContext | None) -> None:
    # The tests check the reaction of the other side.
    with contextlib.suppress(OSError, h2.exceptions.ProtocolError), client:
        if tls is None:
            speak(client)
            return
        with tls.wrap_socket(client, server_side=True) as secure:
            speak(secure)


def _end(sock: socket.socket) -> None:
    """Close it, and wake up a thread that waits for it."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def build_tls_context(certificates: Certificates, folder: Path, *alpn: str) -> ssl.SSLContext:
    """Return a server's TLS that offers `alpn`; the files are written into `folder`."""
    for name in ("ca", "cert", "key"):
        (folder / f"{name}.pem").write_text(getattr(certificates, name))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


def http1(site: Site) -> Speak:
    """Send one answer per connection, with a content-length, then close."""

    def speak(sock: socket.socket) -> None:
        with sock.makefile("rb") as incoming:
            request = incoming.readline().decode()
            if not request:
                return
            method, path, _ = request.split()
            headers: dict[str, str] = {}
            while line := incoming.readline().decode().strip():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            body = incoming.read(int(headers.get("content-length", 0)))
            reply = site.reply(
                ReceivedRequest(method=method, path=path, headers=headers, body=body)
            )
        lines = [f"HTTP/1.1 {reply.status} Whatever", f"Content-Length: {reply.length}"]
        lines += [f"{name}: {value}" for name, value in reply.headers]
        head = "".join(f"{line}\r\n" for line in [*lines, ""]).encode()
        sock.sendall(head + (b"" if method == "HEAD" else reply.body))

    return speak


def http2(site: Site) -> Speak:
    return lambda sock: _Http2(site, sock).speak()


def by_alpn(first: Speak, **others: Speak) -> Speak:
    """Use `first`, except for clients that agreed on a protocol of `others`."""

    def speak(sock: socket.socket) -> None:
        agreed = sock.selected_alpn_protocol() if isinstance(sock, ssl.SSLSocket) else None
        others.get(agreed or "", first)(sock)

    return speak


def saying(*pieces: bytes, then_wait: bool = False) -> Speak:
    """Send this, whatever is requested, and close or stay silent."""

    def speak(sock: socket.socket) -> None:
        sock.recv(1 << 16)
        for piece in pieces:
            sock.sendall(piece)
        while then_wait and sock.recv(1 << 16):
            pass

    return speak


class _Http2:
    """One connection; data that exceed the client's window wait until that is larger."""

    def __init__(self, site: Site, sock: socket.socket) -> None:
        self._site = site
        self._sock = sock
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self._h2 = h2.connection.H2Connection(config)
        self._open: dict[int, ReceivedRequest] = {}
        self._unsent: dict[int, tuple[bytes, Headers]] = {}

    def speak(self) -> None:
        self._h2.initiate_connection()
        self._sock.sendall(self._h2.data_to_send())
        while data := self._sock.recv(1 << 16):
            try:
                for event in self._h2.receive_data(data):
                    self._see(event)
                self._send_more()
            finally:
                self._sock.sendall(self._h2.data_to_send())

    def _see(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            headers = dict(event.headers)
            self._open[event.stream_id] = ReceivedRequest(
                method=headers[":method"], path=headers[":path"], headers=headers
            )
        elif isinstance(event, h2.events.DataReceived):
            self._open[event.stream_id].body += event.data
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self._answer(event.stream_id)

    def _answer(self, stream: int) -> None:
        request = self._open[stream]
        reply = self._site.reply(request)
        headers: list[tuple[str, str]] = [(":status", str(reply.status)), *reply.headers]
        if not reply.trailers:
            headers.append(("content-length", str(reply.length)))
        bare = request.method == "HEAD" or not (reply.body or reply.trailers or reply.reset)
        self._h2.send_headers(stream, headers, end_stream=bare)
        if reply.reset:
            self._h2.reset_stream(stream, 2)
        elif not bare:
            self._unsent[stream] = (reply.body, reply.trailers)

    def _send_more(self) -> None:
        for stream, (body, trailers) in list(self._unsent.items()):
            while body and (window := self._h2.local_flow_control_window(stream)):
                size = min(window, self._h2.max_outbound_frame_size)
                last = len(body) <= size and not trailers
                self._h2.send_data(stream, body[:size], end_stream=last)
                body = body[size:]
            self._unsent[stream] = (body, trailers)
            if not body:
                del self._unsent[stream]
                if trailers:
                    self._h2.send_headers(stream, list(trailers), end_stream=True)
