"""Wake-on-LAN: a packet on the local network that starts a machine which is off or asleep."""

import re
import socket

from orchestrator.core.errors import InvalidRequestError

_MAC = re.compile(r"[0-9a-f]{2}([:-][0-9a-f]{2}){5}")


def parse_mac_address(text: str) -> str:
    """Return the address as `00:11:22:33:44:55`; empty stays empty."""
    text = text.strip().lower()
    if not text:
        return ""
    # An odd first byte is a group of machines, never one of them.
    if not _MAC.fullmatch(text) or int(text[:2], 16) % 2:
        raise InvalidRequestError(
            "expected the MAC address of one machine, such as 00:11:22:33:44:55, got "
            f"{text[:40]!r}",
            field="mac_address",
        )
    return text.replace("-", ":")


def build_magic_packet(mac_address: str) -> bytes:
    """Return the 102 bytes that wake the machine: six bytes 0xff, and its address 16 times."""
    return b"\xff" * 6 + bytes.fromhex(mac_address.replace(":", "")) * 16


def send_magic_packet(mac_address: str, to: str) -> None:
    """Send one packet; `to`: a broadcast address with its port. Nobody answers it.

    Raise OSError if this machine cannot send to it.
    """
    host, _, port = to.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.sendto(build_magic_packet(mac_address), (host, int(port)))
