"""Reads of profiles, hosts and credentials."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError
from orchestrator.fleet.facts import Contradiction, find_contradictions
from orchestrator.fleet.models import (
    Credential,
    HardwareProfile,
    Host,
    HostChange,
    HostSnapshot,
    HostState,
    HostTransport,
)
from orchestrator.fleet.open_hours import OpenHours, parse

#: A host that reported a reservation is asked again after this time.
ASK_AGAIN_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsableHost:
    """A host whose state allows a job now.

    `hours.seconds_left(now, timezone)` says whether it is open.
    """

    id: UUID
    name: str
    team_id: int
    profile_id: int
    tags: tuple[str, ...]
    open_hours: str
    timezone: str

    @property
    def hours(self) -> OpenHours:
        return parse(self.open_hours)


def load_profiles(member: Member) -> QuerySet[HardwareProfile]:
    return member.team.profiles.prefetch_related("hosts")


def load_hosts(member: Member) -> QuerySet[Host]:
    return member.team.hosts.select_related(
        "profile", "credential", "lease__job__run__definition__benchmark"
    )


def load_own_hosts(member: Member) -> QuerySet[Host]:
    """Return hosts that a run may ask for: all but the external ones."""
    return load_hosts(member).exclude(transport=HostTransport.EXTERNAL)


def load_credentials(member: Member) -> QuerySet[Credential]:
    return member.team.credentials.order_by("name")


def load_host(member: Member, host_id: UUID) -> Host:
    host = load_hosts(member).filter(pk=host_id).first()
    if host is None:
        raise NotFoundError.build_for_team("host")
    return host


def load_own_host(member: Member, host_id: UUID) -> Host:
    """Return a host that Pitwall can reach. Raise ConflictError for an external one."""
    host = load_host(member, host_id)
    if host.transport == HostTransport.EXTERNAL:
        raise ConflictError(f"the host {host} is external: Pitwall only receives its results")
    return host


def load_host_by_name(member: Member, name: str) -> Host:
    host = load_hosts(member).filter(name=name).first()
    if host is None:
        raise NotFoundError(f"the team has no host named {name}")
    return host


def load_hosts_by_name(member: Member, names: list[str]) -> list[Host]:
    """Return the hosts of these names, in their order.

    InvalidRequestError names one that is missing.

    External hosts count as missing.
    """
    hosts = member.team.hosts.exclude(transport=HostTransport.EXTERNAL).select_related("profile")
    by_name = {host.name: host for host in hosts.filter(name__in=names)}
    for name in names:
        if name not in by_name:
            known = ", ".join(sorted(hosts.values_list("name", flat=True))) or "none"
            raise InvalidRequestError(
                f"the team has no host named {name}; its hosts are: {known}", field="hosts"
            )
    return [by_name[name] for name in dict.fromkeys(names)]


def load_profile(member: Member, slug: str) -> HardwareProfile:
    """Return the profile of an address; NotFoundError if there is none."""
    profile = member.team.profiles.filter(slug=slug).first()
    if profile is None:
        raise NotFoundError(f"the team has no hardware profile {slug}")
    return profile


def load_chosen_profile(member: Member, slug: str) -> HardwareProfile:
    """Return the profile that a request names in its field `profile`."""
    try:
        return load_profile(member, slug)
    except NotFoundError as error:
        raise InvalidRequestError(str(error), field="profile") from error


def find_latest_snapshot(host: Host) -> HostSnapshot | None:
    return host.snapshots.order_by("-taken_at").first()


def load_contradictions(host: Host) -> list[Contradiction]:
    """Return the fields that differ between the host's latest facts and its profile."""
    snapshot = find_latest_snapshot(host)
    return find_contradictions(vars(host.profile), snapshot.facts) if snapshot else []


def load_host_changes(host: Host) -> QuerySet[HostChange]:
    """Return the epochs of a host, oldest first. Get the host through `load_host`."""
    return host.changes.order_by("at")


def load_usable_hosts(team_ids: Collection[int]) -> list[UsableHost]:
    """Return the hosts of these teams that are ready and not reserved."""
    hosts = (
        Host.objects.filter(state=HostState.READY, team__in=team_ids)
        .exclude(_build_reserved_filter(utc_now()))
        .order_by("name", "pk")
    )
    return [
        UsableHost(
            id=host.pk,
            name=host.name,
            team_id=host.team_id,
            profile_id=host.profile_id,
            tags=tuple(host.tags),
            open_hours=host.open_hours,
            timezone=host.timezone,
        )
        for host in hosts
    ]


def _build_reserved_filter(now: datetime) -> Q:
    """Return the hosts that are reserved; one that was reserved on the host is asked again."""
    recent = Q(reservation_seen_at=None) | Q(reservation_seen_at__gt=now - ASK_AGAIN_AFTER)
    return Q(reserved_until__isnull=False, reserved_until__gt=now) & recent
