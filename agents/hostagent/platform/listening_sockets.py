"""The listening sockets of this host and their processes, from /proc."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import NamedTuple, Optional

from .ports import format_host, get_address_family
from .process_table import HAS_PROC, find_family
from .processes import Child
from .system import read_process_table

_LISTEN = "0A"
#: Measured code may listen on as many as it likes; a message names these.
MOST_NAMED = 5


class ListeningSocket(NamedTuple):
    """A listening TCP socket: its address as the kernel writes it, its port and its inode."""

    address: str
    port: int
    inode: str


def find_listeners(child: Child, address: str, port: int) -> Optional[set[int]]:
    """Return the processes of the child that listen on the port; None if unknown.

    Empty if another program listens there as well. The kernel can give two programs the same free
    port before they listen; only one of them gets it in the end.
    """
    if not HAS_PROC:
        return None
    inodes = {item.inode for item in find_listening_sockets(address, port)}
    # Without any the listener is elsewhere, such as in another network namespace.
    if not inodes:
        return None
    table = read_process_table()
    pids = child.tree(table) | (find_family(table, {os.getpid()}) - {os.getpid()})
    try:
        sockets = {pid: _open_sockets(pid) & inodes for pid in pids}
    except PermissionError:
        return None
    if inodes - set().union(*sockets.values()):
        return set()
    return {pid for pid, own in sockets.items() if own}


def find_listening_sockets(address: str, port: int) -> list[ListeningSocket]:
    """Return the listening sockets that a connection to this address can reach."""
    forms = _list_address_forms(address)
    return [
        item for item in _list_listening_sockets() if item.port == port and item.address in forms
    ]


def describe_listening(child: Child) -> str:
    """Return what the processes of the child do instead of listening on the expected port.

    It is the end of a sentence about the child; "" if the system does not show it.
    """
    if not HAS_PROC:
        return ""
    table = read_process_table()
    pids = {pid for pid in child.tree(table) if not table[pid].zombie}
    try:
        own = set().union(*map(_open_sockets, pids))
    except PermissionError:
        return ""
    found = {_format_socket(item) for item in _list_listening_sockets() if item.inode in own}
    names = sorted(found)[:MOST_NAMED]
    where = f"it listens on {' and '.join(names)}" if names else "it listens on no TCP port"
    if child.exit_code is None:
        return f"{where}; let it listen on {{bind}} and {{port}}" if names else where
    if not pids:
        return ""
    return (
        f"its process {min(pids)} runs on{f', and {where}' if names else ''}: it became a daemon. "
        "Start it in the foreground, such as nginx with `-g 'daemon off;'`"
    )


def _format_socket(item: ListeningSocket) -> str:
    packed = b"".join(
        struct.pack("=I", int(item.address[at : at + 8], 16))
        for at in range(0, len(item.address), 8)
    )
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return f"{format_host(socket.inet_ntop(family, packed))}:{item.port}"


def _list_listening_sockets() -> list[ListeningSocket]:
    sockets = []
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in map(str.split, lines):
            if row[3] == _LISTEN:
                address, _, port = row[1].partition(":")
                sockets.append(ListeningSocket(address, int(port, 16), f"socket:[{row[9]}]"))
    return sockets


def _list_address_forms(address: str) -> set[str]:
    """Return the address as in the tables, and the wildcard addresses."""
    packed = socket.inet_pton(get_address_family(address), address)
    forms = {_format_hex_address(packed), "0" * 32}
    if len(packed) == 4:
        forms |= {_format_hex_address(bytes(10) + b"\xff\xff" + packed), "0" * 8}
    return forms


def _format_hex_address(packed: bytes) -> str:
    """Return words of 32 bits, each in the machine's byte order: 127.0.0.1 is 0100007F."""
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words)


def _open_sockets(pid: int) -> set[str]:
    """Return its open sockets, such as `socket:[123]`; none if it has ended."""
    sockets = set()
    try:
        for entry in os.listdir(f"/proc/{pid}/fd"):
            try:
                sockets.add(os.readlink(f"/proc/{pid}/fd/{entry}"))
            except FileNotFoundError:
                continue
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return {name for name in sockets if name.startswith("socket:")}
