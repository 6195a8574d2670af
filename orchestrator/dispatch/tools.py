"""Which load tool a host uses: the orchestrator's own where it fits, else what the host has."""

import platform
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from orchestrator.core.errors import HostSetupError
from orchestrator.core.ids import sha256_hex
from orchestrator.loadtools.registry import TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTool:
    """A binary that the orchestrator can send, and the platform that it runs on."""

    path: str
    sha256: str
    system: str
    machine: str

    @property
    def remote_path(self) -> str:
        return f"tools/{self.sha256}/{Path(self.path).name}"


def own_tool(name: str) -> OwnTool | None:
    """The orchestrator's binary of the tool `name`, if the installation names one."""
    path = settings.OHA_PATH if name == "oha" else ""
    if not path or not Path(path).is_file():
        return None
    return _identified(path, Path(path).stat().st_mtime_ns)


def tool_path(name: str, facts: dict[str, Any]) -> tuple[str, OwnTool | None]:
    """Where the host finds the tool, and the binary to send there first, if any.

    HostSetupError where neither the orchestrator nor the host has a fit one.
    """
    own = own_tool(name)
    if own is not None and (own.system, own.machine) == (facts.get("system"), facts.get("machine")):
        return own.remote_path, own
    theirs = (facts.get("tools") or {}).get(name) or {}
    if theirs.get("path") and _fit(name, theirs.get("version")):
        return str(theirs["path"]), None
    least = ".".join(map(str, TOOLS[name].minimum_version))
    raise HostSetupError(
        f"{name} {least} or newer is missing: the host has "
        f"{theirs.get('version') or 'none'} on its PATH, and this installation has no binary for "
        f"{facts.get('system')} {facts.get('machine')}; install {name} on the host, "
        "or set PITWALL_OHA to a binary for that platform"
    )


@lru_cache(maxsize=8)
def _identified(path: str, _changed_ns: int) -> OwnTool:
    # The binary must run here, or its platform would be a guess.
    subprocess.run([path, "--version"], check=True, capture_output=True, timeout=10)
    return OwnTool(
        path=path,
        sha256=sha256_hex(Path(path).read_bytes()),
        system=platform.system(),
        machine=platform.machine(),
    )


def _fit(name: str, version: object) -> bool:
    parts = str(version or "").split(".")
    if not all(part.isdigit() for part in parts):
        return False
    return tuple(int(part) for part in parts) >= TOOLS[name].minimum_version
