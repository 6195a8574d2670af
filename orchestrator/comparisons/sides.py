"""A side of a comparison: a commit, optionally of one case, host, profile, tool or version."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from django.db.models import BooleanField, Exists, F, OuterRef
from django.db.models.expressions import RawSQL

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.load_specs import list_tools
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.selectors import (
    load_case,
    load_commits,
    load_definition_version,
    read_spec,
)
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.measurements.measured_hosts import load_visible_hosts
from orchestrator.results.models import Point, Series
from orchestrator.runs.models import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class SideQuery:
    """A side as the parameters of a URL name it; an empty parameter does not filter."""

    commit: str = ""
    case: str = ""
    host: str = ""
    profile: str = ""
    tool: str = ""
    version: str = ""

    def values(self) -> tuple[str, ...]:
        """All parameters, in the order of the fields."""
        return tuple(getattr(self, each.name) for each in fields(self))

    def with_defaults(self, base: "SideQuery") -> "SideQuery":
        """This side, with its empty parameters taken from `base`.

        A side that names a host does not take the profile of `base`, and the other way round.
        """
        values = {
            field.name: getattr(self, field.name) or getattr(base, field.name)
            for field in fields(self)
        }
        if self.host and not self.profile:
            values["profile"] = ""
        if self.profile and not self.host:
            values["host"] = ""
        return replace(self, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """None and an empty tool do not filter. `definition` is one version of the definition."""

    commit: Commit
    case: Case | None = None
    host: Host | None = None
    profile: HardwareProfile | None = None
    tool: str = ""
    definition: Definition | None = None

    @property
    def hosts(self) -> tuple[object, object]:
        """The ids of host and profile: if equal, two sides are of the same hosts."""
        return (self.host and self.host.pk, self.profile and self.profile.pk)

    def query(self) -> dict[str, str]:
        """The parameters of a URL that name this side, without empty ones."""
        parameters = {
            "commit": self.commit.sha,
            "case": self.case.key if self.case else "",
            "host": self.host.name if self.host else "",
            "profile": self.profile.slug if self.profile else "",
            "tool": self.tool,
            "version": str(self.definition.version) if self.definition else "",
        }
        return {key: value for key, value in parameters.items() if value}


def resolve_sides(
    member: Member, benchmark: Benchmark, baseline: SideQuery, contender: SideQuery
) -> tuple[Side, Side]:
    """Both sides; the contender takes its empty parameters from the baseline.

    NotFoundError if the team has no such object, InvalidRequestError for invalid parameters and
    for two equal sides.
    """
    queries = baseline, contender.with_defaults(baseline)
    commits = load_commits(member, benchmark, [query.commit for query in queries])
    first, second = (
        _resolve_side(member, benchmark, query, commit)
        for query, commit in zip(queries, commits, strict=True)
    )
    check_sides_differ(first, second)
    return first, second


def check_sides_differ(baseline: Side, contender: Side) -> None:
    """InvalidRequestError if both sides are equal."""
    if baseline == contender:
        raise InvalidRequestError(
            f"{baseline.commit.short_sha} cannot be compared with itself; name another commit, or "
            "another case, host, profile, tool or version of the definition for the contender",
            field="contender",
        )


def _resolve_side(member: Member, benchmark: Benchmark, query: SideQuery, commit: Commit) -> Side:
    return Side(
        commit=commit,
        case=load_case(benchmark, query.case) if query.case else None,
        host=_load_host(member, benchmark, query.host) if query.host else None,
        profile=_load_profile(member, benchmark, query.profile) if query.profile else None,
        tool=query.tool,
        definition=load_definition_version(benchmark, _parse_version(query.version))
        if query.version
        else None,
    )


def _load_host(member: Member, benchmark: Benchmark, name: str) -> Host:
    host = load_visible_hosts(member, benchmark).filter(name=name).first()
    if host is None:
        raise NotFoundError(f"the team has no host {name}")
    return host


def _load_profile(member: Member, benchmark: Benchmark, slug: str) -> HardwareProfile:
    profiles = HardwareProfile.objects.filter(slug=slug)
    if isinstance(member, Visitor):
        profiles = profiles.filter(hosts__in=load_visible_hosts(member, benchmark))
    else:
        profiles = profiles.filter(team=member.team)
    profile = profiles.first()
    if profile is None:
        raise NotFoundError(f"the team has no hardware profile {slug}")
    return profile


def _parse_version(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise InvalidRequestError(
            f"{text!r} is not a version of a definition: expected a number such as 2",
            field="version",
        )
    return int(text)


#: The tools are read from this many versions of the definition, the newest.
_VERSIONS_WITH_TOOLS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a form offers to narrow a side: values with their labels."""

    cases: Sequence[tuple[str, str]]
    hosts: Sequence[tuple[str, str]]
    profiles: Sequence[tuple[str, str]]
    tools: Sequence[tuple[str, str]]
    versions: Sequence[tuple[str, str]]


def load_choices(member: Member, benchmark: Benchmark) -> Choices:
    """All values that were measured with a benchmark of the member's team."""
    series = Series.objects.filter(member.sees("benchmark__project"), benchmark=benchmark)
    measured = Exists(series.filter(case=OuterRef("pk")))
    cases = benchmark.cases.filter(measured, hidden_at=None).order_by("label")
    hosts = list(
        Host.objects.filter(Exists(series.filter(host=OuterRef("pk"))))
        .order_by("name")
        .values_list("name", "profile__slug", "profile__name")
    )
    runs = Run.objects.filter(definition=OuterRef("pk"))
    versions = list(benchmark.definitions.filter(Exists(runs)).order_by("-version"))
    tools = dict.fromkeys(
        tool for each in versions[:_VERSIONS_WITH_TOOLS] for tool in list_tools(read_spec(each))
    )
    return Choices(
        cases=list(cases.values_list("key", "label")),
        hosts=[(name, name) for name, _, _ in hosts],
        profiles=list(dict.fromkeys((slug, name) for _, slug, name in hosts)),
        tools=[(tool, tool) for tool in tools],
        versions=[(str(each.version), f"version {each.version}") for each in versions],
    )


def load_recent_commits(member: Member, benchmark: Benchmark, limit: int = 50) -> Sequence[Commit]:
    """Those of the newest commits of the project that were measured, newest first."""
    points = Point.objects.filter(commit=OuterRef("pk"), series__benchmark=benchmark)
    commits = benchmark.project.commits.filter(member.sees("project"))
    newest = commits.order_by(F("position").desc(nulls_last=True), "-committed_at")[: 4 * limit]
    # As an annotation it is evaluated for these commits only; as a filter it was for all of them.
    return [each for each in newest.annotate(measured=Exists(points)) if each.measured][:limit]


#: With OFFSET 0 PostgreSQL evaluates it commit by commit, and stops when it has enough.
_HAS_POINTS = """
EXISTS (SELECT FROM results_point point JOIN results_series series ON series.id = point.series_id
        WHERE point.commit_id = benchmarks_commit.id AND series.benchmark_id = %s OFFSET 0)
"""


def load_measured_commits(
    member: Member, benchmark: Benchmark, limit: int | None = None, *, sha: str = ""
) -> list[Commit]:
    """The commits with at least one measured trial, newest first.

    The `limit` newest of them; those whose hash begins with `sha`.
    """
    if not member.sees_project(benchmark.project_id, benchmark.project.team_id):
        return []
    measured = RawSQL(_HAS_POINTS, [benchmark.pk], output_field=BooleanField())
    commits = benchmark.project.commits.filter(measured, sha__startswith=sha)
    ordered = commits.order_by(F("position").desc(nulls_last=True), "-committed_at")
    return list(ordered[:limit] if limit else ordered)
