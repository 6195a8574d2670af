"""Open an SSH connection: socket, handshake, check of the pinned host key, login."""

import contextlib
import io
import socket
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import paramiko

from orchestrator.core.clock import utc_now
from orchestrator.core.errors import (
    HostKeyMismatchError,
    HostSetupError,
    LoginRefusedError,
    UnreachableError,
)
from orchestrator.transport.address import HostKey, JumpHost, SshAddress, place
from orchestrator.transport.certificates import UserCertificate
from orchestrator.transport.keys import KeyPair, parse_private_key
from orchestrator.transport.metered import BoundedPacketizer, MeteredSocket, TunnelSocket
from orchestrator.transport.networks import check_behind_jump, connect_to_host

# These notice a broken link within about 10 s. paramiko's own keepalive alone never does, since it
# only writes. Platforms support different options.
_SOCKET_OPTIONS = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 3),
    (socket.IPPROTO_TCP, "TCP_KEEPALIVE", 3),  # macOS has this in place of TCP_KEEPIDLE
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 2),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 8_000),
)
#: This only keeps the state of firewalls on the way alive.
_KEEPALIVE_S = 30
#: Seconds after which the thread of an idle connection wakes. paramiko's own 0.1 s cost 6 % of a
#: core for 200 idle connections.
_READ_TIMEOUT_S = 5.0
#: The origin of a tunnel, as reported to the jump host.
_SOURCE = ("127.0.0.1", 0)

_ALGORITHMS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}

_KEY_CLASSES: dict[str, type[paramiko.PKey]] = {
    "ssh-ed25519": paramiko.Ed25519Key,
    "ssh-rsa": paramiko.RSAKey,
}


class Login(NamedTuple):
    """Our key, and its certificate if it has one."""

    key: KeyPair
    certificate: UserCertificate | None = None


def scan_host_key(
    host: str,
    port: int,
    timeout_s: float,
    *,
    networks: Sequence[str] = (),
    jumps: Sequence[JumpHost] = (),
    private_key: str = "",
    certificate: str = "",
) -> HostKey:
    """Return the key that a host shows, without logging in. A person then confirms it.

    Of several keys it is the ed25519 one. Raise UnreachableError or HostSetupError. `networks`: the
    networks that the host may be in, see `transport.networks`. `jumps`: the hosts that the
    connection passes; `private_key` logs in to them, with its `certificate` if there is one.
    """
    sock = open_socket(host, port, timeout_s, networks, jumps, private_key, certificate)
    with contextlib.closing(_run_handshake(sock, place(host, port), timeout_s, None)) as connection:
        return _get_host_key(connection)


def open_connection(
    address: SshAddress, *, timeout_s: float
) -> tuple[paramiko.Transport, MeteredSocket]:
    """Return a logged-in connection and its socket; the caller closes it.

    Each step may take `timeout_s`. Raise UnreachableError, HostSetupError (no common algorithm),
    HostKeyMismatchError, LoginRefusedError, CertificateTimeError, or InvalidRequestError if the
    pinned key, our private key or its certificate cannot be read.
    """
    pinned = HostKey.parse(address.host_key)
    login = _read_login(address)
    sock = open_socket(
        address.host,
        address.port,
        timeout_s,
        address.networks,
        address.jumps,
        address.private_key,
        address.certificate,
    )
    return _open_on(sock, address, pinned, login, timeout_s), sock


def open_socket(
    host: str,
    port: int,
    timeout_s: float,
    networks: Sequence[str],
    jumps: Sequence[JumpHost] = (),
    private_key: str = "",
    certificate: str = "",
) -> MeteredSocket:
    """Return a socket to the host, through the connections to its jump hosts.

    Each step may take `timeout_s`. Raise the errors of `open_connection`.
    """
    if not jumps:
        return _connect(host, port, timeout_s, networks)
    check_behind_jump(host, networks)
    last = jumps[-1]
    address = SshAddress(
        host=last.host,
        port=last.port,
        user=last.user,
        host_key=last.host_key,
        private_key=private_key,
        certificate=certificate,
        networks=tuple(networks),
        jumps=tuple(jumps[:-1]),
    )
    connection, sock = open_connection(address, timeout_s=timeout_s)
    return _open_tunnel(connection, sock, last, place(host, port), (host, port), timeout_s)


def _open_tunnel(
    connection: paramiko.Transport,
    sock: MeteredSocket,
    jump: JumpHost,
    where: str,
    target: tuple[str, int],
    timeout_s: float,
) -> MeteredSocket:
    try:
        channel = connection.open_channel("direct-tcpip", target, _SOURCE, timeout=timeout_s)
    except (paramiko.SSHException, EOFError, OSError) as error:
        connection.close()
        raise UnreachableError(
            f"{where} cannot be reached from the jump host {place(jump.host, jump.port)}: {error}. "
            "Check the address, and that the SSH server of the jump host allows it "
            "(AllowTcpForwarding)."
        ) from error
    channel.settimeout(timeout_s)
    return MeteredSocket(cast(socket.socket, TunnelSocket(channel, connection)), via=sock)


def _open_on(
    sock: MeteredSocket, address: SshAddress, pinned: HostKey, login: Login, timeout_s: float
) -> paramiko.Transport:
    """Return a logged-in connection over an open socket, which is closed with it."""
    where = place(address.host, address.port)
    connection = _run_handshake(sock, where, timeout_s, prefer=pinned.type)
    try:
        _check_host_key(address, pinned, _get_host_key(connection))
        _log_in(connection, address, login, timeout_s)
        connection.set_keepalive(_KEEPALIVE_S)
        sock.settimeout(_READ_TIMEOUT_S)
    except BaseException:
        connection.close()
        raise
    return connection


def _run_handshake(
    sock: MeteredSocket, where: str, timeout_s: float, prefer: str | None
) -> paramiko.Transport:
    with _translate_handshake_errors(where), contextlib.ExitStack() as undo:
        undo.callback(sock.close)
        connection = paramiko.Transport(
            cast(socket.socket, sock), packetizer_class=BoundedPacketizer
        )
        undo.callback(connection.close)
        connection.banner_timeout = connection.handshake_timeout = timeout_s
        connection.auth_timeout = timeout_s
        if prefer is not None:
            _prefer_key_type(connection, prefer)
        connection.start_client(timeout=timeout_s)
        connection.get_remote_server_key()  # start_client returns silently after a timeout
        undo.pop_all()
    return connection


def _connect(host: str, port: int, timeout_s: float, networks: Sequence[str]) -> MeteredSocket:
    try:
        sock = connect_to_host(host, port, timeout_s=timeout_s, networks=networks)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreachableError(
            f"{place(host, port)} cannot be reached: {reason}. Check the address, that the machine "
            "is on, and that its SSH server is running."
        ) from error
    for level, name, value in _SOCKET_OPTIONS:
        if hasattr(socket, name):
            sock.setsockopt(level, getattr(socket, name), value)
    return MeteredSocket(sock)


@contextlib.contextmanager
def _translate_handshake_errors(where: str) -> Iterator[None]:
    try:
        yield
    except paramiko.ssh_exception.IncompatiblePeer as error:
        raise HostSetupError(
            f"{where} has no algorithm in common with Pitwall ({error}). Its SSH server is too old "
            "or too restricted: SHA-1 and DSA keys are not supported. Update it, or give it an "
            "ed25519 host key."
        ) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise UnreachableError(
            f"{where} took the connection but did not complete the SSH handshake: "
            f"{str(error) or 'it hung up'}. Check that this is the port of an SSH server; a busy "
            "one may also drop connections (MaxStartups)."
        ) from error


def _prefer_key_type(connection: paramiko.Transport, key_type: str) -> None:
    """Ask for the pinned type first: a host with several keys might show another one."""
    options = connection.get_security_options()
    wanted = _ALGORITHMS.get(key_type, (key_type,))
    known = tuple(options.key_types)
    first = tuple(name for name in wanted if name in known)
    options.key_types = first + tuple(name for name in known if name not in first)


def _get_host_key(connection: paramiko.Transport) -> HostKey:
    key = connection.get_remote_server_key()
    return HostKey.from_blob(key.get_name(), key.asbytes())


def _check_host_key(address: SshAddress, pinned: HostKey, shown: HostKey) -> None:
    if shown.line == pinned.line:
        return
    raise HostKeyMismatchError(
        f"{place(address.host, address.port)} showed the host key {shown.fingerprint_sha256} "
        f"({shown.type}), but {pinned.fingerprint_sha256} ({pinned.type}) was confirmed. If the "
        "machine was reinstalled, compare with `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` on "
        "the machine itself and confirm the new key; if not, another machine answers in its place."
    )


def _log_in(
    connection: paramiko.Transport, address: SshAddress, login: Login, timeout_s: float
) -> None:
    try:
        connection.auth_publickey(address.user, _build_paramiko_key(login))
    except paramiko.AuthenticationException as error:
        if "timeout" in str(error).lower() or "transport shut down" in str(error):
            raise UnreachableError(
                f"{address} did not complete the login within {timeout_s} s: {error}"
            ) from error
        raise _build_refused_error(address, login) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise UnreachableError(f"{address} hung up during the login: {error}") from error
    if not connection.is_authenticated():
        raise _build_refused_error(address, login)


def _read_login(address: SshAddress) -> Login:
    own = parse_private_key(address.private_key)
    if not address.certificate:
        return Login(own)
    certificate = UserCertificate.parse(address.certificate, own.public_openssh)
    certificate.require_valid(utc_now())
    return Login(own, certificate)


def _build_refused_error(address: SshAddress, login: Login) -> LoginRefusedError:
    where = place(address.host, address.port)
    own, certificate = login
    refused = f"{where} refused to log in {address.user!r} with the key {own.fingerprint}"
    if certificate is not None:
        return LoginRefusedError(
            f"{refused} and its certificate ({certificate.describe()}). Check the user, the clock "
            "of the host, and that its SSH server trusts the authority "
            f"{certificate.authority} (TrustedUserCAKeys)"
        )
    return LoginRefusedError(
        f"{refused}. Check the user, and add this line to its ~/.ssh/authorized_keys: "
        f"{own.public_openssh}"
    )


def _build_paramiko_key(login: Login) -> paramiko.PKey:
    own, certificate = login
    key_class = _KEY_CLASSES.get(own.public_openssh.split()[0], paramiko.ECDSAKey)
    key = key_class.from_private_key(io.StringIO(own.private_openssh))
    if certificate is not None:
        # As a message: paramiko would open a text as a file.
        key.load_certificate(paramiko.Message(certificate.blob))
    return key
