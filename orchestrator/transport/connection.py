"""Open an SSH connection: socket, handshake, check of the pinned host key, login."""

import contextlib
import io
import socket
from collections.abc import Iterator, Sequence
from typing import cast

import paramiko

from orchestrator.core.errors import (
    HostKeyMismatchError,
    HostSetupError,
    LoginRefusedError,
    UnreachableError,
)
from orchestrator.transport.address import HostKey, SshAddress, place
from orchestrator.transport.keys import KeyPair, parse_private_key
from orchestrator.transport.metered import BoundedPacketizer, MeteredSocket
from orchestrator.transport.networks import connect_to_host

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
_KEEPALIVE_S = 3

_ALGORITHMS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}

_KEY_CLASSES: dict[str, type[paramiko.PKey]] = {
    "ssh-ed25519": paramiko.Ed25519Key,
    "ssh-rsa": paramiko.RSAKey,
}


def scan_host_key(
    host: str, port: int, timeout_s: float, *, networks: Sequence[str] = ()
) -> HostKey:
    """Return the key that a host shows, without logging in. A person then confirms it.

    Of several keys it is the ed25519 one. Raise UnreachableError or HostSetupError. `networks`: the
    networks that the host may be in, see `transport.networks`.
    """
    sock = _connect(host, port, timeout_s, networks)
    with contextlib.closing(_run_handshake(sock, place(host, port), timeout_s, None)) as connection:
        return _get_host_key(connection)


def open_connection(
    address: SshAddress, *, timeout_s: float
) -> tuple[paramiko.Transport, MeteredSocket]:
    """Return a logged-in connection and its socket; the caller closes it.

    Each step may take `timeout_s`. Raise UnreachableError, HostSetupError (no common algorithm),
    HostKeyMismatchError, LoginRefusedError, or InvalidRequestError if the pinned key or our private
    key cannot be read.
    """
    pinned = HostKey.parse(address.host_key)
    own = parse_private_key(address.private_key)
    sock = _connect(address.host, address.port, timeout_s, address.networks)
    where = place(address.host, address.port)
    connection = _run_handshake(sock, where, timeout_s, prefer=pinned.type)
    try:
        _check_host_key(address, pinned, _get_host_key(connection))
        _log_in(connection, address, own, timeout_s)
        connection.set_keepalive(_KEEPALIVE_S)
    except BaseException:
        connection.close()
        raise
    return connection, sock


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
    connection: paramiko.Transport, address: SshAddress, own: KeyPair, timeout_s: float
) -> None:
    try:
        connection.auth_publickey(address.user, _build_paramiko_key(own))
    except paramiko.AuthenticationException as error:
        if "timeout" in str(error).lower() or "transport shut down" in str(error):
            raise UnreachableError(
                f"{address} did not complete the login within {timeout_s} s: {error}"
            ) from error
        raise _build_refused_error(address, own) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise UnreachableError(f"{address} hung up during the login: {error}") from error
    if not connection.is_authenticated():
        raise _build_refused_error(address, own)


def _build_refused_error(address: SshAddress, own: KeyPair) -> LoginRefusedError:
    return LoginRefusedError(
        f"{place(address.host, address.port)} refused to log in {address.user!r} with the key "
        f"{own.fingerprint}. Check the user, and add this line to its ~/.ssh/authorized_keys: "
        f"{own.public_openssh}"
    )


def _build_paramiko_key(own: KeyPair) -> paramiko.PKey:
    key_class = _KEY_CLASSES.get(own.public_openssh.split()[0], paramiko.ECDSAKey)
    return key_class.from_private_key(io.StringIO(own.private_openssh))
