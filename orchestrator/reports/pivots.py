"""Reads of whole reports: what was measured of a benchmark, laid out as a specification says."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark, Commit, Definition
from orchestrator.benchmarks.selectors import (
    LEAST_DIGITS,
    benchmark_for,
    latest_definition,
    spec_of,
)
from orchestrator.benchmarks.services import repository_of
from orchestrator.comparisons.sides import load_measured_commits
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.measurements.measured_hosts import hosts_for
from orchestrator.measurements.result_versions import mark_of_results
from orchestrator.reports.pivot import pivot
from orchestrator.reports.pivot_columns import chosen
from orchestrator.reports.pivot_external import with_external
from orchestrator.reports.pivot_model import Observation, PivotTable
from orchestrator.reports.pivot_observations import (
    Scope,
    dimensions_in,
    measured,
    published,
    scope_of,
)
from orchestrator.reports.pivot_trials import CellKey, tried
from orchestrator.reports.report_spec import (
    Measure,
    ReportSpec,
)
from orchestrator.runs.models import Run, Trial

#: Of the newest commits at most so many stand in a report of all.
MAX_COMMITS = 50
_NEWEST = {"newest": 1, "all": MAX_COMMITS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report as it is shown. `trials` are those behind its numbers; `versions` of the
    definition are all those that they were measured with. `outcomes`: how many trials of its cases
    were valid, suspect, invalid, failed and so on. `with_host_facts`: visitors get none of them."""

    spec: ReportSpec
    benchmark: Benchmark
    definition: Definition
    commits: tuple[Commit, ...]
    hosts: tuple[Host, ...]
    tables: tuple[PivotTable, ...]
    notes: tuple[str, ...]
    trials: tuple[UUID, ...]
    versions: tuple[int, ...]
    outcomes: Mapping[str, int]
    run: Run | None
    with_host_facts: bool


def report_of(member: Member, spec: ReportSpec, *, run: Run | None = None) -> Report:
    """What the team has measured of the report's benchmark; with `run` only what that measured.

    NotFoundError where the team has no such benchmark, host or commit; InvalidRequestError, with
    the path, where the report names a dimension or a column that there is not.
    """
    benchmark = benchmark_of(member, spec)
    definition = latest_definition(benchmark) if run is None else run.definition
    commits = _commits(member, benchmark, spec.commit, run)
    trials = _trials(member, benchmark, commits, run)
    metrics, merged = _wanted(spec)
    cells = tried(trials, metrics, merged, one_run=run is not None)
    if run is None:
        cells = with_external(cells, benchmark, commits, metrics)
    hosts = _hosts(member, spec, benchmark, cells)
    scope = scope_of(spec, definition, hosts, commits, metrics)
    seen = [*measured(scope, cells, benchmark), *published(member, scope, benchmark, metrics)]
    seen = chosen(seen, spec.cases, "cases")
    if isinstance(member, Visitor):
        seen = [_untold(each) for each in seen]
    versions = _versions(seen)
    return Report(
        spec=spec,
        benchmark=benchmark,
        definition=definition,
        commits=tuple(commits),
        hosts=tuple(hosts),
        tables=_tables(scope, seen),
        notes=_notes(versions),
        trials=tuple(pk for each in seen for pk in each.trials),
        versions=versions,
        outcomes=Counter(one.validity or one.state for each in seen for one in each.samples),
        run=run,
        with_host_facts=not isinstance(member, Visitor),
    )


def _tables(scope: Scope, seen: Sequence[Observation]) -> tuple[PivotTable, ...]:
    names, orders = dimensions_in(scope, seen)
    _check_dimensions(scope.report, names)
    axes = tuple(scope.spec.matrix)
    return tuple(
        pivot(scope.report, table, seen, orders=orders, axes=axes) for table in scope.report.tables
    )


def _untold(seen: Observation) -> Observation:
    """Without what the hosts and their programs said: that is for members alone."""
    return replace(seen, samples=tuple(replace(each, message="") for each in seen.samples))


def mark_of_report(member: Member, spec: ReportSpec) -> str:
    """A text that changes with what `report_of` reads; its errors are the same."""
    benchmark = benchmark_of(member, spec)
    commits = _commits(member, benchmark, spec.commit, None)
    return mark_of_results(benchmark, commits)


def benchmark_of(member: Member, spec: ReportSpec) -> Benchmark:
    """The benchmark that a report is of; NotFoundError where it names none of the team's."""
    if not spec.benchmark:
        raise InvalidRequestError("benchmark: name the benchmark to report on", field="benchmark")
    project, _, slug = spec.benchmark.rpartition("/")
    return benchmark_for(member, slug, project or None)


def _commits(member: Member, benchmark: Benchmark, asked: str, run: Run | None) -> Sequence[Commit]:
    if run is not None:
        return [variant.commit for variant in run.variants.select_related("commit")]
    if asked in _NEWEST:
        return load_measured_commits(member, benchmark, _NEWEST[asked])
    found = _commits_of_hash(member, benchmark, asked)
    if found:
        return found
    # A name: it means what it meant at the last fetch, a page does not wait for another.
    try:
        sha = repository_of(benchmark.project).resolve(asked)
    except InvalidRequestError as error:
        if isinstance(member, Visitor):
            raise _not_measured(benchmark, asked) from error
        raise InvalidRequestError(f"commit: {error}", field="commit") from error
    named = load_measured_commits(member, benchmark, sha=sha)
    if not named:
        shown = asked if isinstance(member, Visitor) else f"{asked} ({sha[:10]})"
        raise _not_measured(benchmark, shown)
    return named


def commit_of_visitor(member: Member, spec: ReportSpec, asked: str) -> str:
    """The full hash of the measured commit that a visitor names by at least 7 digits of it.

    NotFoundError for all else, also for branches and tags: what they are called, and where they
    are, is for members.
    """
    if asked in _NEWEST:
        return asked
    benchmark = benchmark_of(member, spec)
    found = _commits_of_hash(member, benchmark, asked)
    if not found:
        raise _not_measured(benchmark, asked)
    return found[0].sha


def _commits_of_hash(member: Member, benchmark: Benchmark, text: str) -> list[Commit]:
    """The one measured commit whose hash begins with `text`; none where it is not the only one."""
    if len(text) < LEAST_DIGITS:
        return []
    found = load_measured_commits(member, benchmark, sha=text.lower())
    return found if len(found) == 1 else []


def _not_measured(benchmark: Benchmark, asked: str) -> NotFoundError:
    return NotFoundError(f"nothing of {benchmark.slug} was measured at {asked}")


def _trials(
    member: Member, benchmark: Benchmark, commits: Sequence[Commit], run: Run | None
) -> QuerySet[Trial]:
    trials = Trial.objects.filter(
        member.sees("job__run__definition__benchmark__project", team="job__run__team"),
        job__run__definition__benchmark=benchmark,
        variant__commit__in=commits,
    )
    return trials if run is None else trials.filter(job__run=run)


def _wanted(spec: ReportSpec) -> tuple[set[str], set[str]]:
    """The metrics of each trial that are needed, and the percentiles of all trials together."""
    measures: list[Measure] = []
    for table in spec.tables:
        measures += table.metrics
        measures += [column.measure for column in table.columns if column.measure]
    merged = {each.metric for each in measures if each.statistic == "merged"}
    return {each.metric for each in measures}, merged


def _hosts(
    member: Member, spec: ReportSpec, benchmark: Benchmark, cells: Collection[CellKey]
) -> list[Host]:
    """Those that were at work, or those that are asked for, by name."""
    hosts = hosts_for(member, benchmark).order_by("name")
    if spec.hosts:
        missing = set(spec.hosts) - {host.name for host in hosts}
        if missing:
            raise NotFoundError(f"hosts: the team has no host {min(missing)}")
        hosts = hosts.filter(name__in=spec.hosts)
    else:
        hosts = hosts.filter(pk__in={host for host, _, _ in cells if host})
    if spec.profiles:
        hosts = hosts.filter(profile__slug__in=spec.profiles)
    return list(hosts)


def _check_dimensions(spec: ReportSpec, known: Collection[str]) -> None:
    for number, table in enumerate(spec.tables):
        named = [(f"rows[{n}]", each.dimension) for n, each in enumerate(table.rows)]
        for n, column in enumerate(table.columns):
            named += [(f"columns[{n}].across", each) for each in column.across]
        for where, dimension in named:
            if dimension not in known:
                path = f"tables[{number}].{where}"
                raise InvalidRequestError(
                    f"{path}: there is no axis or label {dimension}; there are {', '.join(known)}",
                    field=path,
                )


def _versions(seen: Sequence[Observation]) -> tuple[int, ...]:
    return tuple(sorted({each.version for each in seen if each.trials and each.version}))


def _notes(versions: Sequence[int]) -> tuple[str, ...]:
    if len(versions) < 2:
        return ()
    words = ", ".join(map(str, versions[:-1]))
    return (
        f"The cases were measured with versions {words} and {versions[-1]} of the definition: in "
        "each cell only the newest one counts.",
    )


def dimensions_of(benchmark: Benchmark) -> list[str]:
    """What rows and columns of a report can be: axes, labels, and what every trial has."""
    spec = spec_of(latest_definition(benchmark))
    labels = {
        name: None
        for options in spec.options.values()
        for option in options.values()
        for name in option.labels
    }
    axes = list(spec.matrix)
    return [*axes, *(name for name in labels if name not in axes), "host", "profile", "commit"]
