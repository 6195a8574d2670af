"""HTTP requests to an address that a user entered, but never into our internal network.

The name is resolved once, every address is checked, and the connection goes to a checked address. A
name that later resolves to something else therefore gains nothing. Redirects are not followed.
"""

import contextlib
import http.client
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.core.timers import call_after

TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
RESOLVE_TIMEOUT_S = 10.0
#: Further addresses of a name are not tried.
_MOST_ADDRESSES = 8

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class DeliveryError(PitwallError):
    """There is no answer: no connection, a broken one, or no permitted address."""


class UnresolvedError(DeliveryError):
    """The name of the host cannot be resolved."""


class ForbiddenAddressError(DeliveryError):
    """The address is inside a network that requests must not reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`body` is the beginning of the response body, up to the requested limit."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class AnswerStream:
    """The head of an answer, and its body in pieces."""

    def __init__(self, connection: "_Connection", answer: http.client.HTTPResponse) -> None:
        self._connection, self._answer = connection, answer
        self.status = answer.status

    def get_header(self, name: str) -> str:
        """Return the value of a header; empty if there is none."""
        return self._answer.getheader(name) or ""

    def read(self, most_bytes: int) -> bytes:
        """Return the beginning of the body. Raise DeliveryError if it does not arrive."""
        with self._connection.describe_errors():
            return self._answer.read(most_bytes)

    def read_next(self, most_bytes: int) -> bytes:
        """Return what has arrived, empty at the end. Raise DeliveryError after an interruption.

        A body that is shorter than its `Content-Length` is no error here.
        """
        with self._connection.describe_errors():
            return self._answer.read1(most_bytes)


def check_web_address(url: str, *, field: str = "url") -> str:
    """Return the host of an https or http address. Raise InvalidRequestError if it is malformed.

    The addresses of the host are checked when a request is sent.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    printable = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in {"http", "https"} or not host or "@" in parts.netloc or not printable:
        raise InvalidRequestError(
            "expected an address such as https://hooks.example.org/…, without a user name",
            field=field,
        )
    return host


def refuse_internal(url: str, *, allowed: Sequence[str] = ()) -> None:
    """Raise ForbiddenAddressError for an IP address that `send` would refuse as well.

    Names are resolved only when a request is sent, since their addresses may change.
    """
    parts = urlsplit(url)
    with contextlib.suppress(UnresolvedError):
        port = parts.port or _get_default_port(parts.scheme)
        resolve_addresses(parts.hostname or "", port, allowed, flags=socket.AI_NUMERICHOST)


def send(
    method: str,
    url: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str],
    allowed: Sequence[str] = (),
    most_bytes: int = 4096,
    timeout_s: float = TIMEOUT_S,
) -> Answer:
    """Send a request and return the answer, including a redirect.

    Raise DeliveryError if there is none.

    `allowed`: internal networks (`10.1.0.0/16`) that requests may reach. `timeout_s` limits the
    whole request, however slowly the answer arrives.
    """
    with open_answer(
        method, url, body=body, headers=headers, allowed=allowed, timeout_s=timeout_s
    ) as answer:
        return Answer(status=answer.status, body=answer.read(most_bytes))


@contextlib.contextmanager
def open_answer(
    method: str,
    url: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str],
    allowed: Sequence[str] = (),
    timeout_s: float,
    idle_s: float = TIMEOUT_S,
) -> Iterator[AnswerStream]:
    """Send a request as `send` does, and provide the answer within the context.

    `timeout_s` limits the time of the context, and `idle_s` each wait for data.
    """
    check_web_address(url)
    parts = urlsplit(url)
    connection = _build_connection(parts, allowed, timeout_s, idle_s)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with contextlib.closing(connection), call_after(connection.seconds_left, connection.cut):
        with connection.describe_errors():
            connection.request(method, target, body=body or None, headers=dict(headers))
            answer = connection.getresponse()
        with contextlib.closing(answer):
            yield AnswerStream(connection, answer)


def resolve_addresses(
    host: str,
    port: int,
    allowed: Sequence[str],
    *,
    flags: int = 0,
    timeout_s: float = RESOLVE_TIMEOUT_S,
) -> list[str]:
    """Return the addresses of the host, at least one; all of them must be permitted.

    Raise UnresolvedError if there is none or no answer in time, ForbiddenAddressError if one is
    internal.
    """
    try:
        addresses = _resolve(host, port, flags, timeout_s)
    except (OSError, UnicodeError) as error:
        raise UnresolvedError(f"{host} cannot be resolved: {_describe_error(error)}") from error
    networks = [ipaddress.ip_network(each, strict=False) for each in allowed]
    for each in map(ipaddress.ip_address, addresses):
        if is_internal(each) and not any(each in network for network in networks):
            raise ForbiddenAddressError(
                f"{host} is {each}, an address inside this network; your administrator can "
                "allow it with PITWALL_ALLOWED_INTERNAL_NETWORKS"
            )
    return addresses[:_MOST_ADDRESSES]


def _resolve(host: str, port: int, flags: int, timeout_s: float) -> list[str]:
    """Resolve a name in a separate thread, because a resolver has no timeout."""
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
            # Remove the zone (`fe80::1%eth0`).
            plain = (str(each[4][0]).partition("%")[0] for each in infos)
            answers.put(list(dict.fromkeys(plain)))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=resolve, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout_s)
    except queue.Empty:
        raise TimeoutError(f"no answer within {timeout_s:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def is_internal(address: _Address) -> bool:
    """Return whether it is not public: loopback, private, link-local, metadata, multicast, …"""
    inner = extract_ipv4(address)
    if inner is not None:
        return is_internal(inner)
    is_site_local = getattr(address, "is_site_local", False)
    return not address.is_global or address.is_multicast or address.is_reserved or is_site_local


def extract_ipv4(address: _Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that is embedded in an IPv6 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


class _Connection(http.client.HTTPConnection):
    """Connects to the checked addresses, one after the other, whatever the name resolves to now."""

    def __init__(
        self,
        host: str,
        port: int,
        encrypted: bool,
        addresses: Sequence[str],
        *,
        since: float,
        timeout_s: float,
        idle_s: float,
    ) -> None:
        # The brackets of an IPv6 literal belong to the Host header; http.client adds them.
        super().__init__(host, port)
        if encrypted:
            self.default_port = 443
        self._addresses, self._encrypted, self._idle_s = addresses, encrypted, idle_s
        self._timeout_s, self._deadline = timeout_s, since + timeout_s
        # `http.client` forgets its socket when an answer ends with the connection.
        self._cuttable: socket.socket | None = None
        self.was_cut = False

    def connect(self) -> None:
        self._keep(self._first_that_answers())
        if self._encrypted:
            context = ssl.create_default_context()
            # `_cut` must reach the socket during the handshake as well.
            wrapped = context.wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
            self._keep(wrapped)
            wrapped.do_handshake()
        self.sock.settimeout(self._idle_s)

    @contextlib.contextmanager
    def describe_errors(self) -> Iterator[None]:
        """Raise DeliveryError, with the host and the reason, for errors of the connection."""
        try:
            yield
            if self.was_cut:
                raise TimeoutError
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = (
                f"no whole answer within {self._timeout_s:g} s"
                if self.was_cut
                else _describe_error(error)
            )
            raise DeliveryError(f"{self.host}: {why}") from error

    @property
    def seconds_left(self) -> float:
        return self._deadline - time.monotonic()

    def cut(self) -> None:
        """End the connection at the deadline, from another thread."""
        self.was_cut = True
        sock = self._cuttable
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _keep(self, sock: socket.socket) -> None:
        self.sock = self._cuttable = sock
        if self.was_cut:  # `cut` ran before the socket was set.
            raise TimeoutError

    def _first_that_answers(self) -> socket.socket:
        problem: OSError = OSError("there is no address")
        for address in self._addresses:
            if self.was_cut:
                raise TimeoutError
            left_s = max(0.01, self.seconds_left)
            try:
                return socket.create_connection(
                    (address, self.port), min(CONNECT_TIMEOUT_S, left_s)
                )
            except OSError as error:
                problem = error
        raise problem


def _build_connection(
    parts: SplitResult, allowed: Sequence[str], timeout_s: float, idle_s: float
) -> _Connection:
    """Resolve the host; the time for that is part of the time limit."""
    since = time.monotonic()
    host, port = parts.hostname or "", parts.port or _get_default_port(parts.scheme)
    addresses = resolve_addresses(host, port, allowed, timeout_s=timeout_s)
    encrypted = parts.scheme == "https"
    return _Connection(
        host, port, encrypted, addresses, since=since, timeout_s=timeout_s, idle_s=idle_s
    )


def _get_default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _describe_error(error: BaseException) -> str:
    return str(error)[:300] or type(error).__name__
