"""What stands on one side of a comparison: a commit, and whatever narrows it down."""

from dataclasses import dataclass, fields, replace

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.selectors import case_for, commits_for, version_of
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.measurements.measured_hosts import hosts_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A side in the words of an address; an empty one narrows nothing down."""

    commit: str = ""
    case: str = ""
    host: str = ""
    profile: str = ""
    tool: str = ""
    version: str = ""

    def words(self) -> tuple[str, ...]:
        """All that it says, in the order of the fields."""
        return tuple(getattr(self, each.name) for each in fields(self))

    def otherwise(self, base: "Asked") -> "Asked":
        """This side, with what it leaves out taken from `base`.

        A host of its own is not narrowed down by the profile of `base`, nor the other way round.
        """
        taken = {each.name: getattr(self, each.name) or getattr(base, each.name)
                 for each in fields(self)}  # fmt: skip
        if self.host and not self.profile:
            taken["profile"] = ""
        if self.profile and not self.host:
            taken["host"] = ""
        return replace(self, **taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """None and an empty tool narrow nothing down. `definition` is one version of it."""

    commit: Commit
    case: Case | None = None
    host: Host | None = None
    profile: HardwareProfile | None = None
    tool: str = ""
    definition: Definition | None = None

    @property
    def place(self) -> tuple[object, object]:
        """What hosts it is about: two sides of the same place are of the same hosts."""
        return (self.host and self.host.pk, self.profile and self.profile.pk)

    def words(self) -> dict[str, str]:
        """As an address names it, without what narrows nothing down."""
        found = {
            "commit": self.commit.sha,
            "case": self.case.key if self.case else "",
            "host": self.host.name if self.host else "",
            "profile": self.profile.slug if self.profile else "",
            "tool": self.tool,
            "version": str(self.definition.version) if self.definition else "",
        }
        return {key: value for key, value in found.items() if value}


def sides_of(
    member: Member, benchmark: Benchmark, baseline: Asked, contender: Asked
) -> tuple[Side, Side]:
    """Both sides; the contender is like the baseline in all that it leaves out.

    NotFoundError for what the team has not, InvalidRequestError for words that name nothing and
    for a side against itself.
    """
    asked = baseline, contender.otherwise(baseline)
    commits = commits_for(member, benchmark, [each.commit for each in asked])
    first, second = (
        _side(member, benchmark, each, commit) for each, commit in zip(asked, commits, strict=True)
    )
    check_differ(first, second)
    return first, second


def check_differ(baseline: Side, contender: Side) -> None:
    """InvalidRequestError for a side against itself."""
    if baseline == contender:
        raise InvalidRequestError(
            f"{baseline.commit.short_sha} cannot be compared with itself; name another commit, or "
            "another case, host, profile, tool or version of the definition for the contender",
            field="contender",
        )


def _side(member: Member, benchmark: Benchmark, asked: Asked, commit: Commit) -> Side:
    return Side(
        commit=commit,
        case=case_for(benchmark, asked.case) if asked.case else None,
        host=_host(member, benchmark, asked.host) if asked.host else None,
        profile=_profile(member, benchmark, asked.profile) if asked.profile else None,
        tool=asked.tool,
        definition=version_of(benchmark, _number(asked.version)) if asked.version else None,
    )


def _host(member: Member, benchmark: Benchmark, name: str) -> Host:
    found = hosts_for(member, benchmark).filter(name=name).first()
    if found is None:
        raise NotFoundError(f"the team has no host {name}")
    return found


def _profile(member: Member, benchmark: Benchmark, slug: str) -> HardwareProfile:
    profiles = HardwareProfile.objects.filter(slug=slug)
    if isinstance(member, Visitor):
        profiles = profiles.filter(hosts__in=hosts_for(member, benchmark))
    else:
        profiles = profiles.filter(team=member.team)
    found = profiles.first()
    if found is None:
        raise NotFoundError(f"the team has no hardware profile {slug}")
    return found


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise InvalidRequestError(
            f"{text!r} is no version of a definition: expected a number such as 2", field="version"
        )
    return int(text)
