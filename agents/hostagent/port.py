"""TCP ports of 127.0.0.1: a free one, and who holds one that is not."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Optional

from .errors import TrialFailed
from .proctable import HAS_PROC, read_proc

_LISTENING = "0A"


def free_port() -> int:
    """A port that the kernel has just named free; somebody else may still be quicker."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_free(port: int) -> None:
    """Raises TrialFailed `port_in_use`, naming the holder where it can be read."""
    if _can_bind(port) and not _answers(port):
        return
    holder = _holder(port)
    by = f" by {holder}" if holder else ""
    raise TrialFailed(
        "port_in_use", f"port {port} of 127.0.0.1 is in use{by}; end that or choose another port"
    )


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        # Connections of an earlier trial in TIME_WAIT are no reason to refuse the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _holder(port: int) -> Optional[str]:
    inodes = _listening_inodes(port) if HAS_PROC else set()
    for name in os.listdir("/proc") if inodes else ():
        if name.isdigit() and inodes & _socket_inodes(int(name)):
            return f"process {name} ({(read_proc(int(name), 'comm') or '?').strip()})"
    return None


def _listening_inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        lines = Path(table).read_text().splitlines()[1:] if os.path.exists(table) else []
        for fields in map(str.split, lines):
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found


def _socket_inodes(pid: int) -> set[str]:
    try:
        links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    except OSError:
        return set()
    return {
        match.group(1) for match in (re.match(r"socket:\[(\d+)\]", link) for link in links) if match
    }
