"""Find out whether an SSH server answers at an address, and if not, why."""

import contextlib
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.core.errors import UnreachableError
from orchestrator.transport.address import JumpHost, place
from orchestrator.transport.connection import open_socket
from orchestrator.transport.metered import MeteredSocket
from orchestrator.transport.networks import connect_to_host

#: RFC 4253: other lines may come before the one with the version.
_MOST_LINES = 20
_MOST_BYTES = 8192


class NoSuchNameError(UnreachableError):
    """The name has no address."""


class PortRefusedError(UnreachableError):
    """The machine answers, but no program listens on the port."""


class NoAnswerError(UnreachableError):
    """No answer: the machine is off, elsewhere, or behind a firewall."""


class NotSshError(UnreachableError):
    """Another program than an SSH server listens there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedAddress:
    """The IP address that answered, and the identification of its SSH server."""

    ip: str
    server: str


def reach_ssh_server(
    host: str,
    port: int,
    timeout_s: float,
    *,
    networks: Sequence[str] = (),
    jumps: Sequence[JumpHost] = (),
    private_key: str = "",
    certificate: str = "",
) -> ReachedAddress:
    """Return the SSH server that answers there, or raise one of the errors above.

    Raise ForbiddenHostError if hosts must not be there: see `transport.networks`. With `jumps`,
    also raise the errors of `transport.connection`; `private_key` logs in to them, with its
    `certificate` if there is one.
    """
    where = place(host, port)
    deadline = time.monotonic() + timeout_s
    if jumps:
        tunnel = open_socket(host, port, timeout_s, networks, jumps, private_key, certificate)
        with contextlib.closing(tunnel):
            server = _read_banner(tunnel, where, time.monotonic() + timeout_s)
        return ReachedAddress(ip=host, server=server)
    try:
        with connect_to_host(host, port, timeout_s=timeout_s, networks=networks) as sock:
            return ReachedAddress(
                ip=sock.getpeername()[0], server=_read_banner(sock, where, deadline)
            )
    except (socket.gaierror, UnicodeError) as error:
        raise NoSuchNameError(
            f"The name {host} has no address: {_describe_error(error)}."
        ) from error
    except ConnectionRefusedError as error:
        raise PortRefusedError(f"{where} refused: nothing listens on this port.") from error
    except TimeoutError as error:
        raise NoAnswerError(f"{where} did not answer within {timeout_s:g} s.") from error
    except OSError as error:
        raise NoAnswerError(f"{where} cannot be reached: {_describe_error(error)}.") from error


def _read_banner(sock: socket.socket | MeteredSocket, where: str, deadline: float) -> str:
    received = b""
    while len(received) < _MOST_BYTES:
        for line in received.split(b"\n")[:-1][:_MOST_LINES]:
            if line.startswith(b"SSH-"):
                return line.decode(errors="replace").strip()
        sock.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            more = sock.recv(1024)
        except TimeoutError:
            more = b""
        if not more:
            break
        received += more
    text = received[:60].decode(errors="replace").strip()
    says = f"it sent {text!r}" if text else "it sent nothing"
    raise NotSshError(f"{where} took the connection, but is not an SSH server: {says}.")


def _describe_error(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
