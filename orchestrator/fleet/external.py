"""Hosts that measure without us: known only by the results that are sent from there."""

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.fleet.host_quota import check_room_for_names
from orchestrator.fleet.models import HardwareProfile, Host, HostState, HostTransport

PROFILE = "external"


def host_told(*, member: Member, name: str, profile: str | None = None) -> Host:
    """The team's host of this name; where there is none, a new one that is never used for runs.

    `profile` is that of a new host, made where it is new as well. Who asks at the same time gets
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
            record_audit(member=member, action="host.told", subject=host)
    return host
