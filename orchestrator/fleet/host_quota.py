"""How many hosts a team has, and whether it may have another."""

from django.conf import settings

from orchestrator.accounts.models import Team
from orchestrator.accounts.quotas import QuotaExceededError, check_hosts, lock_quotas
from orchestrator.fleet.models import HardwareProfile, Host, HostState, HostTransport


def hosts_counted(team: Team) -> int:
    """Those that Pitwall measures on: neither retired ones nor the names of others' machines."""
    counted = Host.objects.filter(team=team).exclude(state=HostState.RETIRED)
    return counted.exclude(transport=HostTransport.EXTERNAL).count()


def check_room(team: Team) -> None:
    """Call it inside the transaction that adds a host; ConflictError where the team has enough."""
    quotas = lock_quotas(team)
    if quotas.hosts is not None:
        check_hosts(team=team, quotas=quotas, used=hosts_counted(team))


def check_room_for_names(team: Team, *, hosts: int = 0, profiles: int = 0) -> None:
    """Before so many external hosts and profiles are added, inside the transaction that adds them;
    QuotaExceededError where the team has enough."""
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    external = Host.objects.filter(team=team, transport=HostTransport.EXTERNAL)
    if hosts and external.count() + hosts > settings.MAX_EXTERNAL_HOSTS:
        raise QuotaExceededError(
            f"{team.name} may have {settings.MAX_EXTERNAL_HOSTS} hosts that measure without "
            "Pitwall; send results under the name of a kind of machine, such as ci-large, "
            "instead of a name for each machine, or ask whoever runs this Pitwall for a higher "
            "PITWALL_MAX_EXTERNAL_HOSTS"
        )
    kept = HardwareProfile.objects.filter(team=team)
    if profiles and kept.count() + profiles > settings.MAX_PROFILES:
        raise QuotaExceededError(
            f"{team.name} may have {settings.MAX_PROFILES} hardware profiles; use one that there "
            "is, or ask whoever runs this Pitwall for a higher PITWALL_MAX_PROFILES"
        )
