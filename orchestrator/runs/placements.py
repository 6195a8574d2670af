"""Placements of a request: `host:a`, `profile:t490s`, `tag:fast`, or the plain name of a host."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.accounts.members import Member
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet import selectors as fleet
from orchestrator.fleet.models import HELD, UNUSABLE, HardwareProfile, Host, HostTransport
from orchestrator.runs.models import HostRole, Job, Placement

KINDS = ("host", "profile", "tag")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementChoice:
    """A requested host, profile or tag; `candidates` are the hosts that may be used."""

    host: Host | None = None
    profile: HardwareProfile | None = None
    tag: str = ""
    candidates: tuple[Host, ...] = ()

    @property
    def text(self) -> str:
        """Return the text of a request."""
        if self.host is not None:
            return self.host.name
        return f"profile:{self.profile.slug}" if self.profile else f"tag:{self.tag}"


#: The named roles of one job; the target's host plays the others.
Roles = Mapping[str, PlacementChoice]


def parse_placements(
    member: Member,
    hosts: Sequence[str],
    placements: Sequence[Mapping[str, str]],
    known_roles: frozenset[str],
) -> tuple[Roles, ...]:
    """Resolve each placement of a request; InvalidRequestError names what is not available.

    `hosts` are placements with one host for all roles. `known_roles` are those of the definition.
    """
    resolved: list[Roles] = [
        {HostRole.TARGET: parse_choice(member, text, "hosts")} for text in dict.fromkeys(hosts)
    ]
    for at, roles in enumerate(placements):
        resolved.append(_parse_roles(member, roles, known_roles, f"placements[{at}]"))
    if not resolved:
        raise InvalidRequestError("choose at least one host", field="hosts")
    return tuple(resolved)


def parse_choice(member: Member, text: str, field: str) -> PlacementChoice:
    """Resolve `text` in the member's team, if one of its hosts can be used."""
    kind, colon, name = text.strip().partition(":")
    if not colon:
        kind, name = "host", text.strip()
    if kind not in KINDS or not name:
        raise InvalidRequestError(
            f"expected a host's name, profile:NAME or tag:NAME, got {text!r}", field=field
        )
    if kind == "host":
        return _choose_host(member, name, field)
    if kind == "profile":
        profile = _load_profile(member, name, field)
        return PlacementChoice(
            profile=profile, candidates=_find_usable_hosts(member, field, text, profile=profile)
        )
    return PlacementChoice(
        tag=name, candidates=_find_usable_hosts(member, field, text, tags__contains=[name])
    )


def place_job(job: Job, roles: Roles) -> list[Placement]:
    """Return the unsaved placement rows of a new job."""
    return [
        Placement(
            job=job,
            role=role,
            wanted_host=one.host,
            wanted_profile=one.profile,
            wanted_tag=one.tag,
        )
        for role, one in roles.items()
    ]


def _parse_roles(
    member: Member, roles: Mapping[str, str], known: frozenset[str], field: str
) -> Roles:
    for role in roles:
        if role not in known:
            raise InvalidRequestError(
                f"the definition has no role {role!r}; its roles are {', '.join(sorted(known))}",
                field=f"{field}.{role}",
            )
    if HostRole.TARGET not in roles:
        raise InvalidRequestError("name at least the target, such as target=rack-1", field=field)
    choices = {
        role: parse_choice(member, roles[role], f"{field}.{role}")
        for role in HostRole.values
        if role in roles
    }
    if len(choices) == 1:
        # One host plays all roles, whichever it will be, so no address is needed.
        return choices
    named = [one.host for one in choices.values() if one.host is not None]
    if len(choices) == len(named) and len(set(named)) == 1:
        return {HostRole.TARGET: choices[HostRole.TARGET]}
    _check_reach(choices, field)
    return choices


def _check_reach(roles: Roles, field: str) -> None:
    """Check that each host of a job has an address at which the others reach it."""
    for role, one in roles.items():
        for host in one.candidates:
            if host.transport == HostTransport.LOCAL and not host.data_address:
                raise InvalidRequestError(
                    f"the host {host.name} has no address at which the job's other hosts reach it; "
                    "set its data address on the host's page",
                    field=f"{field}.{role}",
                )


def _choose_host(member: Member, name: str, field: str) -> PlacementChoice:
    try:
        host = fleet.load_hosts_by_name(member, [name])[0]
    except InvalidRequestError as error:
        raise InvalidRequestError(str(error), field=field) from error
    if host.state in UNUSABLE:
        raise InvalidRequestError(
            f"the host {host.name} cannot be used: {host.get_state_display().lower()}", field=field
        )
    return PlacementChoice(host=host, candidates=(host,))


def _load_profile(member: Member, name: str, field: str) -> HardwareProfile:
    try:
        return fleet.load_profile(member, name)
    except NotFoundError as error:
        raise InvalidRequestError(str(error), field=field) from error


def _find_usable_hosts(member: Member, field: str, text: str, **which: object) -> tuple[Host, ...]:
    hosts = tuple(fleet.load_hosts(member).filter(**which).exclude(state__in=HELD))
    if not hosts:
        problem = f"no host of {text} can be used now; activate one, or choose another"
        raise InvalidRequestError(problem, field=field)
    return hosts
