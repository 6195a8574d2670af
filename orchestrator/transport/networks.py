"""Networks of hosts: a name is resolved once, and the connection goes to a checked address."""

import ipaddress
import socket
from collections.abc import Sequence

from orchestrator.core.errors import HostSetupError
from orchestrator.transport.http import extract_ipv4

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenHostError(HostSetupError):
    """Hosts must not be at this address."""


def connect_to_host(
    host: str, port: int, *, timeout_s: float, networks: Sequence[str]
) -> socket.socket:
    """Return a TCP connection to the first address of the host that answers.

    `networks`: the networks that hosts may be in, such as `10.1.0.0/16`. If there are none, all
    addresses are permitted except this machine and link-local ones. Raise ForbiddenHostError, or
    OSError as `socket.create_connection` does.
    """
    last: OSError | None = None
    for address in _resolve_addresses(host, port, networks):
        try:
            return socket.create_connection((address, port), timeout=timeout_s)
        except OSError as error:
            last = error
    assert last is not None, "a name that can be resolved has an address"
    raise last


def check_literal(host: str, networks: Sequence[str]) -> None:
    """Raise ForbiddenHostError for an IP address where hosts must not be; names are not checked."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    _check(host, address, networks)


def check_behind_jump(host: str, networks: Sequence[str]) -> None:
    """Raise ForbiddenHostError for an address behind a jump host where hosts must not be.

    The jump host resolves names, as in OpenSSH. So only addresses are allowed if `networks`
    restricts them.
    """
    check_literal(host, networks)
    if networks and not is_ip_address(host):
        raise ForbiddenHostError(
            f"behind a jump host, give the IP address of {host}: the networks of hosts are "
            "restricted (PITWALL_HOST_NETWORKS), and the jump host would resolve the name."
        )


def is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _resolve_addresses(host: str, port: int, networks: Sequence[str]) -> list[str]:
    """Return all addresses of the host; each must be permitted."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in infos))
    for each in addresses:
        # Remove the zone (`fe80::1%eth0`).
        _check(host, ipaddress.ip_address(each.partition("%")[0]), networks)
    return addresses


def _check(host: str, address: _Address, networks: Sequence[str]) -> None:
    inner = extract_ipv4(address) or address
    if networks:
        allowed = any(inner in ipaddress.ip_network(each, strict=False) for each in networks)
    else:
        allowed = not (
            inner.is_loopback or inner.is_link_local or inner.is_unspecified or inner.is_multicast
        )
    if not allowed:
        shown = host if host == str(address) else f"{host} ({address})"
        raise ForbiddenHostError(
            f"Hosts may not be at {shown}: it is outside of the networks for hosts. Your "
            "administrator can allow it with PITWALL_HOST_NETWORKS."
        )
