"""External hosts: machines that measure without Pitwall and send their results."""

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.fleet.host_quota import check_room_for_names
from orchestrator.fleet.models import HardwareProfile, Host, HostState, HostTransport

PROFILE = "external"


def provide_external_host(*, member: Member, name: str, profile: str | None = None) -> Host:
    """Return the team's host of this name. If there is none, create one that no run can use.

    `profile` is the profile of a new host; it is created too if it is new. Concurrent calls return
    the same host.
    """
    member.require(Role.MEMBER, to="send results")
    known = member.team.hosts.filter(name=name).first()
    if known is not None:
        return known
    with transaction.atomic():
        slug = profile or PROFILE
        is_known = HardwareProfile.objects.filter(team=member.team, slug=slug).exists()
        check_room_for_names(member.team, hosts=1, profiles=0 if is_known else 1)
        kind, _ = HardwareProfile.objects.get_or_create(
            team=member.team, slug=slug, defaults={"name": slug}
        )
        host, is_new = Host.objects.get_or_create(
            team=member.team,
            name=name,
            defaults={
                "profile": kind,
                "transport": HostTransport.EXTERNAL,
                "state": HostState.EXTERNAL,
            },
        )
        if is_new:
            record_audit(member=member, action="host.imported", subject=host)
    return host
