"""The load tool of a host: Pitwall's own binary if it is suitable, else the host's."""

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.hostagent.platform.program_versions import read_tool_features, read_tool_version
from orchestrator.benchmarks.matrix import resolve_load
from orchestrator.benchmarks.spec import Scalar, Spec
from orchestrator.core.errors import HostSetupError
from orchestrator.core.ids import sha256_hex
from orchestrator.loadtools.registry import TOOLS

#: A load that a definition brings along; it needs no binary from Pitwall.
SCRIPT = "script"
#: Optional features of a tool, by name in facts: the title, and how to get them.
FEATURES = {"http3": ("HTTP/3", "make tools, or cargo install oha --features http3")}
Needs = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTool:
    """A binary that Pitwall can send, and the platform that it runs on."""

    path: str
    sha256: str
    system: str
    machine: str
    version: str | None
    features: frozenset[str]

    @property
    def remote_path(self) -> str:
        return f"tools/{self.sha256}/{Path(self.path).name}"


def collect_tool_needs(spec: Spec, cases: Iterable[Mapping[str, Scalar]]) -> Needs:
    """Return the load tools of these cases (their parameters), with the features that each
    needs."""
    needs: dict[str, frozenset[str]] = {}
    for parameters in cases:
        load = resolve_load(spec, parameters)
        wanted = frozenset({"http3"}) if load.protocol == "h3" else frozenset()
        needs[load.tool] = needs.get(load.tool, frozenset()) | wanted
    return needs


def find_own_tool(name: str) -> OwnTool | None:
    """Return Pitwall's binary of the tool `name`, if the installation names one.

    HostSetupError if it cannot be run here, since its platform is then unknown.
    """
    path = settings.LOAD_TOOLS.get(name, "")
    if not path or not Path(path).is_file():
        return None
    return _identify_tool(name, path, Path(path).stat().st_mtime_ns)


def locate_tool(
    name: str, facts: Mapping[str, Any], needs: frozenset[str] = frozenset()
) -> tuple[str, OwnTool | None]:
    """Return the tool's path on the host, and the binary to send there first, if any.

    HostSetupError if neither Pitwall nor the host has a suitable one with the features `needs`. For
    a script the path is the Python that runs the agent.
    """
    if name == SCRIPT:
        return str(facts.get("python_path") or ""), None
    own = find_own_tool(name)
    mine = _explain_unfit_own_tool(name, own, facts, needs)
    if own is not None and not mine:
        return own.remote_path, own
    theirs = (facts.get("tools") or {}).get(name) or {}
    not_theirs = _explain_unfit_host_tool(name, theirs, needs)
    if not not_theirs:
        return str(theirs["path"]), None
    raise _build_missing_error(
        name, facts, needs, f"the host {not_theirs}, and this installation {mine}"
    )


def _build_missing_error(
    name: str, facts: Mapping[str, Any], needs: frozenset[str], why: str
) -> HostSetupError:
    least = ".".join(map(str, TOOLS[name].minimum_version))
    having = "".join(f" with {FEATURES[each][0]}" for each in sorted(needs))
    how = "".join(f" ({FEATURES[each][1]})" for each in sorted(needs))
    return HostSetupError(
        f"{name} {least} or newer{having} is missing: {why}; install {name} on the host{how}, or "
        f"set {build_setting_name(name)} to such a binary for {facts.get('system')} "
        f"{facts.get('machine')}"
    )


def build_setting_name(name: str) -> str:
    """Return the variable that names Pitwall's binary of a tool."""
    return f"PITWALL_{name.upper()}"


def _explain_unfit_own_tool(
    name: str, own: OwnTool | None, facts: Mapping[str, Any], needs: frozenset[str]
) -> str:
    platform_there = (facts.get("system"), facts.get("machine"))
    if own is None and settings.LOAD_TOOLS.get(name):
        return f"names {settings.LOAD_TOOLS[name]}, which is not a file"
    if own is None or (own.system, own.machine) != platform_there:
        return f"has no binary for {facts.get('system')} {facts.get('machine')}"
    why = _explain_unfit(name, own.version, own.features, needs)
    return why and f"sends {own.path}, which {why}"


def _explain_unfit_host_tool(name: str, theirs: Mapping[str, Any], needs: frozenset[str]) -> str:
    if not theirs.get("path"):
        return "has none on its PATH"
    why = _explain_unfit(name, theirs.get("version"), theirs.get("features") or (), needs)
    return why and f"has {theirs['path']}, which {why}"


def _explain_unfit(
    name: str, version: object, features: Iterable[str], needs: frozenset[str]
) -> str:
    """Return why it is unsuitable; empty if it is suitable."""
    parts = str(version or "").split(".")
    if not all(part.isdigit() for part in parts):
        return "reports no version"
    if tuple(int(part) for part in parts) < TOOLS[name].minimum_version:
        return f"is {version}"
    missing = sorted(needs - set(features))
    return f"is built without {FEATURES[missing[0]][0]}" if missing else ""


@lru_cache(maxsize=16)
def _identify_tool(name: str, path: str, _changed_ns: int) -> OwnTool:
    try:
        version = read_tool_version(name, path)
    except OSError as error:
        raise HostSetupError(
            f"{build_setting_name(name)}={path} cannot be run on the orchestrator's machine "
            f"({error}); name a binary that can, or unset it so that hosts use their own"
        ) from error
    return OwnTool(
        path=path,
        sha256=sha256_hex(Path(path).read_bytes()),
        system=platform.system(),
        machine=platform.machine(),
        version=version,
        features=frozenset(read_tool_features(name, path) or ()),
    )
