"""Find a free port, and name the program that holds a used one."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import Optional

from ..errors import TrialFailed
from .process_table import HAS_PROC


def find_free_port(address: str, wanted: Optional[int]) -> int:
    """Return a port of `address` that is free now; `wanted`: the only acceptable one."""
    with socket.socket(get_address_family(address)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, wanted or 0))
        except OSError as error:
            raise _build_refusal(address, wanted, error) from error
        return int(probe.getsockname()[1])


def get_address_family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def format_host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _build_refusal(address: str, wanted: Optional[int], error: OSError) -> TrialFailed:
    if wanted is None:
        return TrialFailed("internal", f"this host cannot listen on {address}: {error}")
    return TrialFailed(
        "port_in_use",
        f"port {wanted} of {address} is taken{_describe_holder(wanted)} ({error.strerror}); stop "
        "what holds it, or leave the port out of the definition so that one is chosen",
    )


def _describe_holder(port: int) -> str:
    """Return the program that listens there, as ` by NAME (pid N)`, or "" if unknown."""
    if not HAS_PROC:
        return ""
    inodes = _list_listening_inodes(port)
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(_read_link(link) in inodes for link in (entry / "fd").iterdir()):
                return f" by {(entry / 'comm').read_text().strip()} (pid {entry.name})"
    return ""


def _read_link(link: Path) -> str:
    """Return the target; "" for a file that the process has closed in the meantime."""
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _list_listening_inodes(port: int) -> set[str]:
    lines: list[str] = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            lines += Path("/proc/net", name).read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return {
        f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")
    }
