"""Who listens on a port of this host, as the kernel tells it."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import NamedTuple, Optional

from .ports import family_of
from .process_table import HAS_PROC, family
from .processes import Child
from .system import snapshot

_LISTEN = "0A"


class Listener(NamedTuple):
    """A listening TCP socket: its address as the kernel writes it, and its inode."""

    address: str
    inode: str


def is_of_child(child: Child, address: str, port: int) -> Optional[bool]:
    """Whether nobody but the child, or what it started, answers at the port.

    Two programs that got the same free port from the kernel start at the same time, and only one
    of them has it in the end. None where the system does not tell.
    """
    if not HAS_PROC:
        return None
    inodes = {each.inode for each in listeners(address, port)}
    # Without any the answers come from elsewhere, such as another network namespace.
    if not inodes:
        return None
    pids = child.tree() | (family(snapshot(), {os.getpid()}) - {os.getpid()})
    try:
        ours = set().union(*(_sockets_of(pid) for pid in pids))
    except PermissionError:
        return None
    return inodes <= ours


def listeners(address: str, port: int) -> list[Listener]:
    """The listening sockets that a connection to this address may reach."""
    reached = _forms(address)
    return [each for each in _listening(port) if each.address in reached]


def _listening(port: int) -> list[Listener]:
    found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except OSError:
            continue
        rows = [line.split() for line in lines]
        found += [
            Listener(row[1].partition(":")[0], f"socket:[{row[9]}]")
            for row in rows
            if row[3] == _LISTEN and row[1].endswith(f":{port:04X}")
        ]
    return found


def _forms(address: str) -> set[str]:
    """How the tables write it, and the addresses that stand for any."""
    packed = socket.inet_pton(family_of(address), address)
    forms = {_words(packed), "0" * 32}
    if len(packed) == 4:
        forms |= {_words(bytes(10) + b"\xff\xff" + packed), "0" * 8}
    return forms


def _words(packed: bytes) -> str:
    """32 bits at a time, each in the machine's byte order: 127.0.0.1 is 0100007F."""
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words)


def _sockets_of(pid: int) -> set[str]:
    """Its open sockets, such as `socket:[123]`; none where it has ended meanwhile."""
    found = set()
    try:
        for entry in os.listdir(f"/proc/{pid}/fd"):
            try:
                found.add(os.readlink(f"/proc/{pid}/fd/{entry}"))
            except FileNotFoundError:
                continue
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return {each for each in found if each.startswith("socket:")}
