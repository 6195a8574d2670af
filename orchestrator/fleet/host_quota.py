"""The number of hosts of a team, and whether it may have another."""

from django.conf import settings

from orchestrator.accounts.models import Team
from orchestrator.accounts.quotas import QuotaExceededError, check_hosts, lock_quotas
from orchestrator.fleet.models import HardwareProfile, Host, HostState, HostTransport


def count_hosts(team: Team) -> int:
    """Return how many hosts Pitwall measures on, without retired and external ones."""
    counted = Host.objects.filter(team=team).exclude(state=HostState.RETIRED)
    return counted.exclude(transport=HostTransport.EXTERNAL).count()


def check_room(team: Team) -> None:
    """Raise ConflictError if the team has enough hosts.

    Call it in the transaction that adds one.
    """
    quotas = lock_quotas(team)
    if quotas.hosts is not None:
        check_hosts(team=team, quotas=quotas, used=count_hosts(team))


def check_room_for_names(team: Team, *, hosts: int = 0, profiles: int = 0) -> None:
    """Raise QuotaExceededError if so many more external hosts and profiles are too many.

    Call it inside the transaction that adds them.
    """
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    external = Host.objects.filter(team=team, transport=HostTransport.EXTERNAL)
    if hosts and external.count() + hosts > settings.MAX_EXTERNAL_HOSTS:
        raise QuotaExceededError(
            f"{team.name} may have {settings.MAX_EXTERNAL_HOSTS} external hosts; send results "
            "under the name of a kind of machine, such as ci-large, instead of a name for each "
            "machine, or ask your administrator for a higher PITWALL_MAX_EXTERNAL_HOSTS"
        )
    kept = HardwareProfile.objects.filter(team=team)
    if profiles and kept.count() + profiles > settings.MAX_PROFILES:
        raise QuotaExceededError(
            f"{team.name} may have {settings.MAX_PROFILES} hardware profiles; use an "
            "existing one, or ask your administrator for a higher PITWALL_MAX_PROFILES"
        )
