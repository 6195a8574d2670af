"""Reads of whole reports: the measurements of a benchmark, arranged by a specification."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark, Commit, Definition
from orchestrator.benchmarks.refs import repository_of
from orchestrator.benchmarks.selectors import (
    LEAST_DIGITS,
    benchmark_for,
    latest_definition,
    spec_of,
)
from orchestrator.comparisons.sides import load_measured_commits
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.measurements.measured_hosts import hosts_for
from orchestrator.measurements.version_keys import mark_of_results
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

#: The limit of commits in a report of all commits, the newest ones.
MAX_COMMITS = 50
_NEWEST = {"newest": 1, "all": MAX_COMMITS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report for display. `trials` are those of its values; `versions` are their versions of the
    definition.

    `outcomes`: the numbers of valid, suspect, invalid, failed, … trials of its cases.
    `with_host_facts`: false for visitors, who get none of them.
    """

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
    """Return the measurements for the report's benchmark; with `run` only those of this run.

    NotFoundError if the team has no such benchmark, host or commit; InvalidRequestError, with the
    path, if the report names an unknown dimension or column.
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
    """Remove messages of hosts and their programs, which only members may see."""
    return replace(seen, samples=tuple(replace(each, message="") for each in seen.samples))


def mark_of_report(member: Member, spec: ReportSpec) -> str:
    """Return a version key, which changes with the data of `report_of`; it raises the same
    errors."""
    benchmark = benchmark_of(member, spec)
    commits = _commits(member, benchmark, spec.commit, None)
    return mark_of_results(benchmark, commits)


def benchmark_of(member: Member, spec: ReportSpec) -> Benchmark:
    """Return the benchmark of a report; NotFoundError if it names none of the team's."""
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
    # A ref: it resolves as of the last fetch, since a page does not wait for another one.
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
    """Return the full hash of the measured commit that a visitor names by at least 7 digits.

    NotFoundError for everything else, including branches and tags: only members may see their names
    and commits.
    """
    if asked in _NEWEST:
        return asked
    benchmark = benchmark_of(member, spec)
    found = _commits_of_hash(member, benchmark, asked)
    if not found:
        raise _not_measured(benchmark, asked)
    return found[0].sha


def _commits_of_hash(member: Member, benchmark: Benchmark, text: str) -> list[Commit]:
    """Return the measured commit whose hash begins with `text`; empty if it is ambiguous."""
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
    """Return the metrics needed of each trial, and the percentiles over all trials."""
    measures: list[Measure] = []
    for table in spec.tables:
        measures += table.metrics
        measures += [column.measure for column in table.columns if column.measure]
    merged = {each.metric for each in measures if each.statistic == "merged"}
    return {each.metric for each in measures}, merged


def _hosts(
    member: Member, spec: ReportSpec, benchmark: Benchmark, cells: Collection[CellKey]
) -> list[Host]:
    """Return the requested hosts by name, by default those with trials."""
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
        f"The cases were measured with versions {words} and {versions[-1]} of the definition: "
        "each cell uses only the newest one.",
    )


def dimensions_of(benchmark: Benchmark) -> list[str]:
    """Return the possible rows and columns of a report: axes, labels, and those of every trial."""
    spec = spec_of(latest_definition(benchmark))
    labels = {
        name: None
        for options in spec.options.values()
        for option in options.values()
        for name in option.labels
    }
    axes = list(spec.matrix)
    return [*axes, *(name for name in labels if name not in axes), "host", "profile", "commit"]
