"""How many hosts a team has, and whether it may have another."""

from orchestrator.accounts.models import Team
from orchestrator.accounts.quotas import check_hosts, locked_limits
from orchestrator.fleet.models import Host, HostState, HostTransport


def hosts_counted(team: Team) -> int:
    """Those that Pitwall measures on: neither retired ones nor the names of others' machines."""
    counted = Host.objects.filter(team=team).exclude(state=HostState.DISABLED)
    return counted.exclude(transport=HostTransport.EXTERNAL).count()


def check_room(team: Team) -> None:
    """Call it inside the transaction that adds a host; ConflictError where the team has enough."""
    limits = locked_limits(team)
    if limits.hosts is not None:
        check_hosts(team=team, limits=limits, used=hosts_counted(team))
