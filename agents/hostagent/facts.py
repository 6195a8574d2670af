"""What this host says of itself. What cannot be read is null, with a reason in `reasons`."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from typing import Any, Optional

from . import facts_linux, facts_macos

#: Facts that do not change while the machine stays what it is; they make the fingerprint.
STATIC = ("cpu_model", "cores", "threads", "memory_bytes", "kernel", "governor", "machine")
READ = (
    "cpu_model",
    "cores",
    "clock_min_mhz",
    "clock_max_mhz",
    "memory_bytes",
    "os_name",
    "os_version",
    "governor",
    "virtualisation",
    "clock_source",
)
TOOLS = ("oha", "git")
_VERSION_TIMEOUT_S = 10


def gather() -> dict[str, Any]:
    """All facts as one JSON-able object; never fails for a fact that cannot be read."""
    system = platform.system()
    read = _READERS.get(system, _nothing)()
    facts: dict[str, Any] = {
        "system": system,
        "machine": platform.machine(),
        "hostname": platform.node() or None,
        "python": platform.python_version(),
        "python_path": sys.executable,
        "kernel": platform.release() or None,
        "threads": os.cpu_count(),
        "load": _load(),
        "tools": {name: _tool(name) for name in TOOLS},
        **{name: read.get(name) for name in READ},
    }
    facts["os_name"] = facts["os_name"] or system
    facts["reasons"] = {
        name: f"{system} did not tell" for name, value in facts.items() if value is None
    }
    facts["fingerprint"] = fingerprint(facts)
    return facts


def fingerprint(facts: dict[str, Any]) -> str:
    """SHA-256 of the static facts: another one is another machine, or a changed one."""
    static = json.dumps({name: facts.get(name) for name in STATIC}, sort_keys=True)
    return hashlib.sha256(static.encode()).hexdigest()


def _nothing() -> dict[str, Any]:
    return {"os_version": platform.version() or None, "cpu_model": platform.processor() or None}


_READERS = {"Linux": facts_linux.read, "Darwin": facts_macos.read}


def _load() -> Optional[list[float]]:
    try:
        return list(os.getloadavg())
    except (AttributeError, OSError):
        return None


def _tool(name: str) -> Optional[dict[str, Any]]:
    """Path, version and SHA-256 of a program on the PATH; None where there is none."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
        ).stdout.decode("utf-8", "replace")
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    except (OSError, subprocess.SubprocessError):
        return {"path": path, "version": None, "sha256": None}
    words = [word for word in said.split() if word[:1].isdigit()]
    return {"path": path, "version": words[0] if words else None, "sha256": digest}
