"""The hosts, profiles and tags that a run may request now, and how busy each is."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestrator.accounts.members import Member
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import HELD, UNUSABLE, Host, HostState
from orchestrator.fleet.reservations import is_reserved
from orchestrator.fleet.selectors import load_hosts, load_own_hosts
from orchestrator.runs.eta import Waiting, Work, load_current_work, load_queued

_REFUSALS = {
    HostState.EXTERNAL: "is measured elsewhere: Pitwall only receives its results. Choose a host "
    "that Pitwall measures.",
    HostState.UNCONFIRMED: "is being set up: finish the checks on its page first.",
    HostState.RETIRED: "is retired: activate it on its page first.",
}


class HostAvailability(StrEnum):
    """Whether a host would accept a job at this moment."""

    FREE = "free"
    BUSY = "busy"
    CLOSED = "closed"
    RESERVED = "reserved"
    HELD = "held"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """`opens_at` is set only for a closed host; `work` only for a host with a job."""

    host: Host
    now: HostAvailability
    opens_at: datetime | None = None
    work: Work | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A host, profile or tag to choose; `value` is its text in a request.

    `waiting` counts the queued jobs that name it, or one of its hosts. `waiting_s` is their
    expected duration, one after another on the available hosts.
    """

    kind: str
    value: str
    title: str
    detail: str
    hosts: tuple[HostStatus, ...]
    waiting: int
    waiting_s: float

    @property
    def usable(self) -> bool:
        """Return whether a request for it is accepted."""
        if self.kind == "host":
            return self.hosts[0].host.state not in UNUSABLE
        return any(each.now != HostAvailability.HELD for each in self.hosts)

    @property
    def counts(self) -> list[tuple[HostAvailability, int]]:
        """Return the numbers of its free, busy, … hosts; states without hosts are omitted."""
        totals = Counter(each.now for each in self.hosts)
        return [(now, totals[now]) for now in HostAvailability if totals[now]]


def load_refusals(member: Member) -> dict[str, str]:
    """Return why no run may request a host, by the name of each such host of the team."""
    hosts = load_hosts(member).filter(state__in=UNUSABLE)
    return {host.name: f"{host.name} {_REFUSALS[HostState(host.state)]}" for host in hosts}


def load_choices(member: Member) -> list[Choice]:
    """Return all that a run of the member's team may request: hosts, then profiles, then tags."""
    now = utc_now()
    rows = list(load_own_hosts(member))
    work = load_current_work(rows)
    hosts = [_build_status(host, now, work.get(host.pk)) for host in rows]
    waiting = load_queued(member.team)
    profiles = {each.host.profile.slug: each.host.profile.name for each in hosts}
    tags = sorted({tag for each in hosts for tag in each.host.tags})
    return [
        *(_build_choice(each, waiting) for each in hosts),
        *(
            _group("profile", slug, f"any {name}", _filter_by_profile(hosts, slug), waiting)
            for slug, name in sorted(profiles.items(), key=lambda item: item[1])
        ),
        *(
            _group("tag", tag, f"any tagged {tag}", _filter_by_tag(hosts, tag), waiting)
            for tag in tags
        ),
    ]


def _build_status(host: Host, now: datetime, work: Work | None) -> HostStatus:
    hours = host.hours
    if host.state in HELD:
        return HostStatus(host=host, now=HostAvailability.HELD)
    if getattr(host, "lease", None) is not None:
        return HostStatus(host=host, now=HostAvailability.BUSY, work=work)
    if hours.seconds_left(now, host.timezone) is None:
        return HostStatus(
            host=host, now=HostAvailability.CLOSED, opens_at=hours.next_open(now, host.timezone)
        )
    if is_reserved(host):
        return HostStatus(host=host, now=HostAvailability.RESERVED)
    if host.state == HostState.UNREACHABLE:
        return HostStatus(host=host, now=HostAvailability.UNREACHABLE)
    return HostStatus(host=host, now=HostAvailability.FREE)


def _build_choice(each: HostStatus, waiting: Waiting) -> Choice:
    return Choice(
        kind="host",
        value=each.host.name,
        title=each.host.name,
        detail=each.host.profile.name,
        hosts=(each,),
        waiting=waiting[f"host:{each.host.pk}"].jobs,
        waiting_s=waiting[f"host:{each.host.pk}"].seconds,
    )


def _group(
    kind: str, name: str, title: str, hosts: Sequence[HostStatus], waiting: Waiting
) -> Choice:
    queued = [waiting[f"{kind}:{name}"], *(waiting[f"host:{each.host.pk}"] for each in hosts)]
    return Choice(
        kind=kind,
        value=f"{kind}:{name}",
        title=title,
        detail=f"{len(hosts)} host{'s' if len(hosts) != 1 else ''}",
        hosts=tuple(hosts),
        waiting=sum(each.jobs for each in queued),
        waiting_s=sum(each.seconds for each in queued) / max(1, len(hosts)),
    )


def _filter_by_profile(hosts: Iterable[HostStatus], slug: str) -> list[HostStatus]:
    return [each for each in hosts if each.host.profile.slug == slug]


def _filter_by_tag(hosts: Iterable[HostStatus], tag: str) -> list[HostStatus]:
    return [each for each in hosts if tag in each.host.tags]
