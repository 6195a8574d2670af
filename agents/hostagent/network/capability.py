"""What this host can emulate, found by doing it in a namespace that ends at once."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from .iproute import CommandFailed, find_program, run_command
from .namespaces import create_namespace

#: The bits of capabilities(7) in CapEff.
_NEEDED = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_STATUS = Path("/proc/self/status")
#: Kind of queue → what it emulates, and a queue of this kind.
_KINDS = {
    "netem": (("delay", "jitter", "loss"), ("netem", "delay", "1ms")),
    "tbf": (("rate",), ("tbf", "rate", "1mbit", "burst", "4000b", "limit", "40000b")),
}


def check_capability() -> tuple[list[str], str]:
    """Return which properties of a network can be emulated, and why the others cannot."""
    if not sys.platform.startswith("linux"):
        return [], "only Linux emulates networks"
    missing = [name for name in ("ip", "tc") if find_program(name) is None]
    if missing:
        return [], f"{' and '.join(missing)} missing: install the package iproute2"
    if not has_capabilities(_read_status()):
        return [], f"it needs {' and '.join(_NEEDED)}: let Pitwall log in as root"
    try:
        return _try_kinds()
    except (OSError, CommandFailed) as error:
        return [], f"it cannot create a network namespace with a link: {error}"


def has_capabilities(status: str) -> bool:
    """Return whether a process with this /proc/PID/status may create and change namespaces."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    held = int(lines.get("CapEff", "0").strip() or "0", 16)
    return all(held >> bit & 1 for bit in _NEEDED.values())


def _read_status() -> str:
    try:
        return _STATUS.read_text()
    except OSError:
        return ""


def _try_kinds() -> tuple[list[str], str]:
    available: list[str] = []
    problems: list[str] = []
    with contextlib.closing(create_namespace()) as namespace, namespace.entered():
        run_command(("ip", "link", "add", "name", "a", "type", "veth", "peer", "name", "b"))
        for kind, (properties, words) in _KINDS.items():
            try:
                run_command(("tc", "qdisc", "replace", "dev", "a", "root", *words))
            except CommandFailed as error:
                problems.append(f"the kernel has no sch_{kind} ({error}); try modprobe sch_{kind}")
            else:
                available += properties
    return available, "; ".join(problems)
