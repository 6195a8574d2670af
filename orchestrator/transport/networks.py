"""Where hosts may be: a name is resolved once, checked, and the checked address connected to."""

import ipaddress
import socket
from collections.abc import Sequence

from orchestrator.core.errors import HostSetupError
from orchestrator.transport.http import embedded_ipv4

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenHostError(HostSetupError):
    """Hosts may not be at this address."""


def connect_to_host(
    host: str, port: int, *, timeout_s: float, networks: Sequence[str]
) -> socket.socket:
    """A TCP connection to the first address of the host that answers.

    `networks`: those that hosts may be in, such as `10.1.0.0/16`; none: all but this machine
    itself and link-local ones. ForbiddenHostError, and OSError as of `socket.create_connection`.
    """
    last: OSError | None = None
    for address in _checked_addresses(host, port, networks):
        try:
            return socket.create_connection((address, port), timeout=timeout_s)
        except OSError as error:
            last = error
    assert last is not None, "a name that can be resolved has an address"
    raise last


def check_literal(host: str, networks: Sequence[str]) -> None:
    """ForbiddenHostError for an address in figures where hosts may not be; a name says nothing."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    _check(host, address, networks)


def _checked_addresses(host: str, port: int, networks: Sequence[str]) -> list[str]:
    """All addresses of the host, of which each has to be allowed."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for each in addresses:
        # A zone (`fe80::1%eth0`) is no part of the address.
        _check(host, ipaddress.ip_address(each.partition("%")[0]), networks)
    return addresses


def _check(host: str, address: _Address, networks: Sequence[str]) -> None:
    inner = embedded_ipv4(address) or address
    if networks:
        allowed = any(inner in ipaddress.ip_network(each, strict=False) for each in networks)
    else:
        allowed = not (
            inner.is_loopback or inner.is_link_local or inner.is_unspecified or inner.is_multicast
        )
    if not allowed:
        shown = host if host == str(address) else f"{host} ({address})"
        raise ForbiddenHostError(
            f"Hosts may not be at {shown}: it is outside of the networks for hosts. Whoever runs "
            "Pitwall can allow it with PITWALL_HOST_NETWORKS."
        )
