"""Which addresses count as one client."""

import ipaddress

#: An address of IPv6 is one of so many of the same customer.
_IPV6_PREFIX = 64


def network_of(address: str) -> str:
    """What an address is counted as: itself, or its network of IPv6."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"  # of a UNIX socket
    if known.version == 4:
        return str(known)
    return str(ipaddress.ip_network(f"{known}/{_IPV6_PREFIX}", strict=False))
