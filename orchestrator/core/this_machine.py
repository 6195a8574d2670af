"""Recognise requests that were made on this machine and came without a proxy."""

from collections.abc import Iterable
from ipaddress import ip_address

#: Headers that proxies add to requests, in lower case.
_OF_PROXIES = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
     "cf-connecting-ip", "x-original-host"}
)  # fmt: skip


def is_local_request(address: str, headers: Iterable[str]) -> bool:
    """Return whether a request from `address` with headers of these names was made on this machine.

    A proxy on this machine that adds no header is not recognised. A caller who knows that there is
    a proxy must not use this function.
    """
    try:
        client = ip_address(address)
    except ValueError:
        return False
    names = {name.lower() for name in headers}
    passed_on = names & _OF_PROXIES or any(name.startswith("x-forwarded") for name in names)
    return client.is_loopback and not passed_on
