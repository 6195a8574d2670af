"""Group client addresses: one network of IPv6 counts as one client."""

import ipaddress
import re

#: All IPv6 addresses with the same prefix of this length belong to one customer.
_IPV6_PREFIX = 64
#: Some proxies write an address with a port.
_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::\d+)?|([0-9.]+):\d+")


def mask_address(address: str) -> str:
    """Return the address itself, or its network for IPv6.

    A port is ignored. An IPv4 address in IPv6 notation is the same client as the IPv4 address.
    """
    known = _parse(address)
    if known is None:
        return "unknown"  # of a UNIX socket
    if known.version == 4 or known.is_loopback:
        return str(known)
    return str(ipaddress.ip_network(f"{known}/{_IPV6_PREFIX}", strict=False))


def is_loopback(network: str) -> bool:
    """Return whether a result of `mask_address` is an address of this machine."""
    known = _parse(network)
    return known is not None and known.is_loopback


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with_port = _WITH_PORT.fullmatch(address.strip())
    if with_port:
        address = with_port[1] or with_port[2]
    try:
        known = ipaddress.ip_address(address.strip())
    except ValueError:
        return None
    return getattr(known, "ipv4_mapped", None) or known
