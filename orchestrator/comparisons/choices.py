"""What a form of comparisons may offer: only what was measured of a benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.loads import tools_of
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.fleet.models import Host
from orchestrator.results.models import Point, Series
from orchestrator.runs.models import Run

#: Of so many versions, the newest, the tools are told.
_VERSIONS_LOOKED_AT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """(value, words) of what narrows a side down."""

    cases: Sequence[tuple[str, str]]
    hosts: Sequence[tuple[str, str]]
    profiles: Sequence[tuple[str, str]]
    tools: Sequence[tuple[str, str]]
    versions: Sequence[tuple[str, str]]


def choices_of(member: Member, benchmark: Benchmark) -> Choices:
    """All that was measured of a benchmark of the member's team."""
    series = Series.objects.filter(member.sees("benchmark__project"), benchmark=benchmark)
    cases = benchmark.cases.filter(Exists(series.filter(case=OuterRef("pk")))).order_by("label")
    hosts = list(
        Host.objects.filter(Exists(series.filter(host=OuterRef("pk"))))
        .order_by("name")
        .values_list("name", "profile__slug", "profile__name")
    )
    runs = Run.objects.filter(definition=OuterRef("pk"))
    versions = list(benchmark.definitions.filter(Exists(runs)).order_by("-version"))
    tools = dict.fromkeys(
        tool for each in versions[:_VERSIONS_LOOKED_AT] for tool in tools_of(spec_of(each))
    )
    return Choices(
        cases=list(cases.values_list("key", "label")),
        hosts=[(name, name) for name, _, _ in hosts],
        profiles=list(dict.fromkeys((slug, name) for _, slug, name in hosts)),
        tools=[(tool, tool) for tool in tools],
        versions=[(str(each.version), f"version {each.version}") for each in versions],
    )


def recently_measured(member: Member, benchmark: Benchmark, limit: int = 50) -> Sequence[Commit]:
    """Of the newest commits of the project those that were measured, newest first."""
    points = Point.objects.filter(commit=OuterRef("pk"), series__benchmark=benchmark)
    commits = benchmark.project.commits.filter(member.sees("project"))
    newest = commits.order_by(F("position").desc(nulls_last=True), "-committed_at")[: 4 * limit]
    # Asked commit by commit: as a condition it would be asked of all of them.
    return [each for each in newest.annotate(measured=Exists(points)) if each.measured][:limit]
