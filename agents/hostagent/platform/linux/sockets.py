"""TCP sockets of a Linux host, from the kernel's socket monitor (sock_diag(7)).

The fallback for kernels without the monitor is /proc/net/tcp. Reading it costs about 4 ms of CPU
each time, even with few sockets, because the kernel walks its whole table.
"""

from __future__ import annotations

import re
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Optional

from .sysfs import SYSTEM, read_text

#: More are not counted: counting them would disturb the measurement.
MAX_SOCKETS = 20_000
ESTABLISHED, TIME_WAIT = 1, 6
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_TCP = 6
_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_REQUEST = struct.Struct("=BBBBI48x")  # inet_diag_req_v2 with an empty inet_diag_sockid
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_TIMEOUT_S = 1.0


def count_established(port: int) -> Optional[int]:
    """Return established TCP connections to a port of this host.

    None if the kernel does not report it, or has more than MAX_SOCKETS sockets.
    """
    try:
        return _limit_count(sum(_count_by_monitor(family, port) for family in _FAMILIES))
    except (OSError, AttributeError, struct.error):
        return count_established_in_tables(port)


def _limit_count(count: int) -> Optional[int]:
    return count if count <= MAX_SOCKETS else None


def _count_by_monitor(family: int, port: int) -> int:
    """Return the number of established sockets of that local port; the kernel filters them."""
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)) as monitor:
        monitor.settimeout(_TIMEOUT_S)
        monitor.sendto(_request(family, port), (0, 0))
        count = 0
        while count <= MAX_SOCKETS:
            for kind, body in _iterate_messages(monitor.recv(1 << 18)):
                if kind == _DONE:
                    return count
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", body)[0], "sock_diag refused")
                count += 1
        return count


def _request(family: int, port: int) -> bytes:
    """Return the request for all established TCP sockets with this local port."""
    at_least, at_most = (
        struct.pack("=BBHBBH", code, 8, 4 + left, 0, 0, port) for code, left in ((2, 16), (3, 8))
    )
    code = at_least + at_most
    attribute = struct.pack("=HH", 4 + len(code), 1) + code
    body = _REQUEST.pack(family, _TCP, 0, 0, 1 << ESTABLISHED) + attribute
    size = _HEADER.size + len(body)
    return _HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0) + body


def _iterate_messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _HEADER.size <= len(data):
        size, kind, *_ = _HEADER.unpack_from(data, offset)
        yield kind, data[offset + _HEADER.size : offset + size]
        offset += (size + 3) & ~3


def count_established_in_tables(port: int, system: Path = SYSTEM) -> Optional[int]:
    """Return the same from /proc/net/tcp and tcp6."""
    total = _count_sockets(system)
    if total is None or total > MAX_SOCKETS:
        return None
    wanted = re.compile(rf"^ *\d+: [0-9A-F]+:{port:04X} [0-9A-F]+:[0-9A-F]+ 01 ", re.MULTILINE)
    tables = (read_text(system / "proc/net" / name) for name in ("tcp", "tcp6"))
    return sum(len(wanted.findall(table)) for table in tables if table)


def _count_sockets(system: Path) -> Optional[int]:
    """Return the number of TCP sockets in use or in TIME_WAIT, of both families."""
    texts = [read_text(system / "proc/net" / name) or "" for name in ("sockstat", "sockstat6")]
    counts = re.findall(r"^TCP6?: inuse (\d+)(?:.* tw (\d+))?", "\n".join(texts), re.MULTILINE)
    return sum(int(n or 0) for pair in counts for n in pair) if counts else None


def are_ports_exhausted(system: Path = SYSTEM) -> Optional[bool]:
    """Return whether no further connection is possible to some address and port; None if unknown.

    Ports in TIME_WAIT count only if the kernel would not reuse them (net.ipv4.tcp_tw_reuse).
    """
    bounds, total = _read_port_range(system), _count_sockets(system)
    if total is None or bounds is None:
        return None
    low, high = bounds
    if total < high - low + 1:
        return False
    if total > 10 * MAX_SOCKETS:
        return None
    reuse = read_text(system / "proc/sys/net/ipv4/tcp_tw_reuse")
    used: Counter[str] = Counter()
    for name in ("tcp", "tcp6"):
        used += _count_used_ports(read_text(system / "proc/net" / name) or "", low, high, reuse)
    return max(used.values(), default=0) >= high - low + 1


def count_local_ports(system: Path = SYSTEM) -> Optional[int]:
    """Return how many local ports connections may use; None if unknown."""
    bounds = _read_port_range(system)
    return None if bounds is None else bounds[1] - bounds[0] + 1


def _read_port_range(system: Path) -> Optional[tuple[int, int]]:
    """Return the lowest and the highest local port that the kernel chooses."""
    words = (read_text(system / "proc/sys/net/ipv4/ip_local_port_range") or "").split()
    return (int(words[0]), int(words[1])) if len(words) == 2 else None


def _count_used_ports(table: str, low: int, high: int, reuse: Optional[str]) -> Counter[str]:
    """Return the number of local ports used by connections to each remote address and port."""
    pattern = r"^ *\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+:[0-9A-F]{4}) ([0-9A-F]{2}) "
    counts: Counter[str] = Counter()
    for port, remote, state in re.findall(pattern, table, re.MULTILINE):
        is_over = int(state, 16) == TIME_WAIT
        reusable = reuse == "1" or (reuse == "2" and _is_loopback(remote))
        if low <= int(port, 16) <= high and not (is_over and reusable):
            counts[remote] += 1
    return counts


def _is_loopback(remote: str) -> bool:
    """Return whether `remote` is loopback; words have the machine's byte order: 0100007F."""
    address = remote.partition(":")[0]
    return address.endswith("7F") or address == "00000000000000000000000001000000"
