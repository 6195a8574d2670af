"""Reads of whole reports: the measurements of a benchmark, arranged by a specification."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.fields import format_axis_value
from orchestrator.benchmarks.models import Benchmark, Commit, Definition
from orchestrator.benchmarks.refs import open_repository
from orchestrator.benchmarks.selectors import (
    LEAST_DIGITS,
    load_benchmark,
    load_latest_definition,
    read_spec,
)
from orchestrator.comparisons.sides import load_measured_commits
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.measurements.measured_hosts import load_visible_hosts
from orchestrator.measurements.version_keys import read_results_version
from orchestrator.reports.claims import JudgedClaims, judge_claims
from orchestrator.reports.pivot import build_table
from orchestrator.reports.pivot_columns import select_observations
from orchestrator.reports.pivot_external import with_external
from orchestrator.reports.pivot_model import Observation, PivotTable
from orchestrator.reports.pivot_observations import (
    Scope,
    build_scope,
    list_all_dimensions,
    load_observations,
    load_reference_observations,
)
from orchestrator.reports.pivot_trials import CellKey, load_tried_cells
from orchestrator.reports.report_notes import build_report_notes
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
    `with_host_facts`: false for visitors, who get none of them. `with_hardware`: whether the
    reader sees the table of hardware. `references`: the machines of reference results.
    """

    spec: ReportSpec
    benchmark: Benchmark
    definition: Definition
    commits: tuple[Commit, ...]
    hosts: tuple[Host, ...]
    tables: tuple[PivotTable, ...]
    claims: JudgedClaims
    notes: tuple[str, ...]
    trials: tuple[UUID, ...]
    versions: tuple[int, ...]
    outcomes: Mapping[str, int]
    run: Run | None
    with_host_facts: bool
    with_hardware: bool
    references: tuple[str, ...]


def build_report(
    member: Member,
    spec: ReportSpec,
    *,
    run: Run | None = None,
    shows_hardware: bool = False,
    shows_published: bool = False,
) -> Report:
    """Return the measurements for the report's benchmark; with `run` only those of this run.

    Visitors see the hardware and reference results only if the report shows them.
    NotFoundError if the team has no such benchmark, host or commit; InvalidRequestError, with the
    path, if the report names an unknown dimension or column.
    """
    benchmark = load_report_benchmark(member, spec)
    definition = load_latest_definition(benchmark) if run is None else run.definition
    commits = _load_commits(member, benchmark, spec.commit, run)
    trials = _load_trials(member, benchmark, commits, run)
    metrics, merged = _list_wanted_metrics(spec)
    cells = load_tried_cells(
        trials,
        metrics,
        merged,
        one_run=run is not None,
        exclude_suspects=spec.suspect_trials == "exclude",
    )
    if run is None:
        cells = with_external(cells, benchmark, commits, metrics)
    hosts = _load_hosts(member, spec, benchmark, cells)
    scope = build_scope(spec, definition, hosts, commits, metrics)
    visits = isinstance(member, Visitor)
    seen = list(load_observations(scope, cells, benchmark))
    # Imported reference results belong to the team, not to the project that a visitor sees.
    if shows_published or not visits:
        seen += load_reference_observations(scope, benchmark, metrics)
    seen = select_observations(seen, spec.cases, "cases")
    if visits:
        seen = [_clear_messages(each) for each in seen]
    versions = _list_versions(seen)
    return Report(
        spec=spec,
        benchmark=benchmark,
        definition=definition,
        commits=tuple(commits),
        hosts=tuple(hosts),
        tables=_build_tables(scope, seen),
        claims=judge_claims(
            spec.claims,
            seen,
            commits=[commit.short_sha for commit in (commits if run is None else commits[::-1])],
            axes=list(scope.spec.matrix),
        ),
        notes=build_report_notes(seen, versions),
        trials=tuple(pk for each in seen for pk in each.trials),
        versions=versions,
        outcomes=Counter(one.validity or one.state for each in seen for one in each.samples),
        run=run,
        with_host_facts=not visits,
        with_hardware=shows_hardware or not visits,
        references=_list_references(seen),
    )


def _build_tables(scope: Scope, seen: Sequence[Observation]) -> tuple[PivotTable, ...]:
    names, orders = list_all_dimensions(scope, seen)
    _check_dimensions(scope.report, names)
    _check_baselines(scope)
    axes, contest = tuple(scope.spec.matrix), scope.spec.contest
    return tuple(
        build_table(scope.report, table, seen, orders=orders, axes=axes, contest=contest)
        for table in scope.report.tables
    )


def _clear_messages(seen: Observation) -> Observation:
    """Remove messages of hosts and their programs, which only members may see."""
    return replace(seen, samples=tuple(replace(each, message="") for each in seen.samples))


def read_report_version(member: Member, spec: ReportSpec) -> str:
    """Return a version key, which changes with the data of `build_report`; it raises the same
    errors."""
    benchmark = load_report_benchmark(member, spec)
    commits = _load_commits(member, benchmark, spec.commit, None)
    return read_results_version(benchmark, commits)


def load_report_benchmark(member: Member, spec: ReportSpec) -> Benchmark:
    """Return the benchmark of a report; NotFoundError if it names none of the team's."""
    if not spec.benchmark:
        raise InvalidRequestError("benchmark: name the benchmark to report on", field="benchmark")
    project, _, slug = spec.benchmark.rpartition("/")
    return load_benchmark(member, slug, project or None)


def _load_commits(
    member: Member, benchmark: Benchmark, ref: str, run: Run | None
) -> Sequence[Commit]:
    if run is not None:
        return [variant.commit for variant in run.variants.select_related("commit")]
    if ref in _NEWEST:
        return load_measured_commits(member, benchmark, _NEWEST[ref])
    commits = _load_commits_by_hash(member, benchmark, ref)
    if commits:
        return commits
    # A ref: it resolves as of the last fetch, since a page does not wait for another one.
    try:
        sha = open_repository(benchmark.project).resolve(ref)
    except InvalidRequestError as error:
        if isinstance(member, Visitor):
            raise _build_unmeasured_error(benchmark, ref) from error
        raise InvalidRequestError(f"commit: {error}", field="commit") from error
    named = load_measured_commits(member, benchmark, sha=sha)
    if not named:
        shown = ref if isinstance(member, Visitor) else f"{ref} ({sha[:10]})"
        raise _build_unmeasured_error(benchmark, shown)
    return named


def load_visitor_sha(member: Member, spec: ReportSpec, ref: str) -> str:
    """Return the full hash of the measured commit that a visitor names by at least 7 digits.

    NotFoundError for everything else, including branches and tags: only members may see their names
    and commits.
    """
    if ref in _NEWEST:
        return ref
    benchmark = load_report_benchmark(member, spec)
    commits = _load_commits_by_hash(member, benchmark, ref)
    if not commits:
        raise _build_unmeasured_error(benchmark, ref)
    return commits[0].sha


def _load_commits_by_hash(member: Member, benchmark: Benchmark, text: str) -> list[Commit]:
    """Return the measured commit whose hash begins with `text`; empty if it is ambiguous."""
    if len(text) < LEAST_DIGITS:
        return []
    commits = load_measured_commits(member, benchmark, sha=text.lower())
    return commits if len(commits) == 1 else []


def _build_unmeasured_error(benchmark: Benchmark, ref: str) -> NotFoundError:
    return NotFoundError(f"nothing of {benchmark.slug} was measured at {ref}")


def _load_trials(
    member: Member, benchmark: Benchmark, commits: Sequence[Commit], run: Run | None
) -> QuerySet[Trial]:
    trials = Trial.objects.filter(
        member.sees("job__run__definition__benchmark__project", team="job__run__team"),
        job__run__definition__benchmark=benchmark,
        variant__commit__in=commits,
    )
    return trials if run is None else trials.filter(job__run=run)


def _list_wanted_metrics(spec: ReportSpec) -> tuple[set[str], set[str]]:
    """Return the metrics needed of each trial, and the percentiles over all trials."""
    measures: list[Measure] = []
    for table in spec.tables:
        measures += table.metrics
        measures += [column.measure for column in table.columns if column.measure]
    merged = {each.metric for each in measures if each.statistic == "merged"}
    claimed = {claim.metric for claim in spec.claims}
    return {each.metric for each in measures} | claimed, merged


def _load_hosts(
    member: Member, spec: ReportSpec, benchmark: Benchmark, cells: Collection[CellKey]
) -> list[Host]:
    """Return the requested hosts by name, by default those with trials."""
    hosts = load_visible_hosts(member, benchmark).order_by("name")
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


def _list_references(seen: Sequence[Observation]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.get_value("host") for each in seen if each.is_published))


def _check_baselines(scope: Scope) -> None:
    """Check that the baseline of each column is a value of the contest axis."""
    contest = scope.spec.contest
    known = list(map(format_axis_value, scope.spec.list_values(contest))) if contest else []
    for number, table in enumerate(scope.report.tables):
        for place, column in enumerate(table.columns):
            if column.baseline is None or column.baseline in known:
                continue
            path = f"tables[{number}].columns[{place}].baseline"
            problem = (
                f"the axis {contest} has no value {column.baseline!r}; it has {', '.join(known)}"
                if contest
                else "the definition has no contest axis; add one, such as contest: server"
            )
            raise InvalidRequestError(f"{path}: {problem}", field=path)


def _list_versions(seen: Sequence[Observation]) -> tuple[int, ...]:
    return tuple(sorted({each.version for each in seen if each.trials and each.version}))


def list_dimensions(benchmark: Benchmark) -> list[str]:
    """Return the possible rows and columns of a report: axes, labels, and those of every trial."""
    spec = read_spec(load_latest_definition(benchmark))
    labels = {
        name: None
        for options in spec.options.values()
        for option in options.values()
        for name in option.labels
    }
    axes = list(spec.matrix)
    return [*axes, *(name for name in labels if name not in axes), "host", "profile", "commit"]
