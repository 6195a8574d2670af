"""Reads of profiles, hosts and credentials."""

from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Credential, HardwareProfile, Host, HostSnapshot


def profiles_of(member: Member) -> QuerySet[HardwareProfile]:
    return member.team.profiles.prefetch_related("hosts")


def hosts_of(member: Member) -> QuerySet[Host]:
    return member.team.hosts.select_related("profile", "credential", "lease__job__run")


def credentials_of(member: Member) -> QuerySet[Credential]:
    return member.team.credentials.order_by("name")


def host_for(member: Member, host_id: UUID) -> Host:
    host = hosts_of(member).filter(pk=host_id).first()
    if host is None:
        raise NotFoundError("there is no such host in this team")
    return host


def host_named(member: Member, name: str) -> Host:
    host = hosts_of(member).filter(name=name).first()
    if host is None:
        raise NotFoundError(f"the team has no host named {name}")
    return host


def hosts_named(member: Member, names: list[str]) -> list[Host]:
    """The hosts of these names, in their order; InvalidRequestError names one that is missing."""
    found = {host.name: host for host in hosts_of(member).filter(name__in=names)}
    for name in names:
        if name not in found:
            known = ", ".join(sorted(hosts_of(member).values_list("name", flat=True))) or "none"
            raise InvalidRequestError(
                f"the team has no host named {name}; its hosts are: {known}", field="hosts"
            )
    return [found[name] for name in dict.fromkeys(names)]


def profile_for(member: Member, slug: str) -> HardwareProfile:
    profile = member.team.profiles.filter(slug=slug).first()
    if profile is None:
        raise InvalidRequestError(f"the team has no hardware profile {slug}", field="profile")
    return profile


def latest_snapshot(host: Host) -> HostSnapshot | None:
    return host.snapshots.order_by("-taken_at").first()
