"""The load tools on a team's hosts, from each host's latest facts."""

from dataclasses import dataclass
from typing import Any

from orchestrator.accounts.members import Member
from orchestrator.fleet.models import Host, HostSnapshot
from orchestrator.loadtools.registry import TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledTool:
    """A load tool on the PATH of a host. If `version` is None, it is unknown and `why` says why.

    `fit`: Pitwall would use this version.
    """

    host: Host
    path: str
    version: str | None
    features: tuple[str, ...]
    reason: str
    fit: bool


def load_installed_tools(member: Member) -> dict[str, list[InstalledTool]]:
    """Return the hosts that have each load tool of the registry, by the tool's name."""
    newest = (
        HostSnapshot.objects.filter(host__team=member.team)
        .select_related("host")
        .order_by("host_id", "-taken_at")
        .distinct("host_id")
    )
    snapshots = sorted(newest, key=lambda each: each.host.name)
    return {
        name: [
            _build_installed_tool(name, snapshot.host, facts)
            for snapshot in snapshots
            if (facts := (snapshot.facts.get("tools") or {}).get(name))
        ]
        for name in TOOLS
    }


def _build_installed_tool(name: str, host: Host, facts: dict[str, Any]) -> InstalledTool:
    version = facts.get("version")
    return InstalledTool(
        host=host,
        path=str(facts.get("path") or ""),
        version=version,
        features=tuple(facts.get("features") or ()),
        reason="" if version else str(facts.get("reason") or "no version reported"),
        fit=_is_fit(name, version),
    )


def _is_fit(name: str, version: str | None) -> bool:
    parts = (version or "").split(".")
    if not all(part.isdigit() for part in parts):
        return False
    return tuple(map(int, parts)) >= TOOLS[name].minimum_version
