"""Find the processes that listen on a port of this host, from /proc."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import NamedTuple, Optional

from .ports import get_address_family
from .process_table import HAS_PROC, find_family
from .processes import Child
from .system import read_process_table

_LISTEN = "0A"


class ListeningSocket(NamedTuple):
    """A listening TCP socket: its address as the kernel writes it, and its inode."""

    address: str
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
    return [item for item in _list_listening_sockets(port) if item.address in forms]


def _list_listening_sockets(port: int) -> list[ListeningSocket]:
    sockets = []
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except OSError:
            continue
        rows = [line.split() for line in lines]
        sockets += [
            ListeningSocket(row[1].partition(":")[0], f"socket:[{row[9]}]")
            for row in rows
            if row[3] == _LISTEN and row[1].endswith(f":{port:04X}")
        ]
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
