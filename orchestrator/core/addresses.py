"""Which addresses count as one client."""

import ipaddress
import re

#: An address of IPv6 is one of so many of the same customer.
_IPV6_PREFIX = 64
#: As some proxies write it: an address with a port.
_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::\d+)?|([0-9.]+):\d+")


def network_of(address: str) -> str:
    """What an address is counted as: itself, or its network of IPv6. A port does not count, and an
    IPv4 address that is written as one of IPv6 is the same client."""
    known = _parse(address)
    if known is None:
        return "unknown"  # of a UNIX socket
    if known.version == 4 or known.is_loopback:
        return str(known)
    return str(ipaddress.ip_network(f"{known}/{_IPV6_PREFIX}", strict=False))


def is_loopback(network: str) -> bool:
    """Whether `network_of` gave it for this machine."""
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
