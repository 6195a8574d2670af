"""Reads of whole reports: what was measured of a benchmark, laid out as a specification says."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.fields import Scalar, shown_value
from orchestrator.benchmarks.loads import load_specs_of
from orchestrator.benchmarks.matrix import CaseSpec, expand, is_baseline
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.resolved import labels_of, options_of, why_unsupported
from orchestrator.benchmarks.selectors import benchmark_for, latest_definition, spec_of
from orchestrator.benchmarks.services import repository_of
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.results.comparisons import commits_measured
from orchestrator.results.pivot import pivot
from orchestrator.results.pivot_columns import chosen
from orchestrator.results.pivot_model import MEASURED, PUBLISHED, Observation, PivotTable
from orchestrator.results.pivot_trials import CellKey, Tried, tried
from orchestrator.results.references import reference_values
from orchestrator.results.report_spec import (
    Measure,
    ReportSpec,
    known_metric,
)
from orchestrator.results.report_units import SCALES
from orchestrator.results.selectors import model_of
from orchestrator.runs.models import Run, Trial

#: Of the newest commits at most so many stand in a report of all.
MAX_COMMITS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report as it is shown. `trials` are those behind its numbers; `versions` of the
    definition are all those that they were measured with. `outcomes`: how many trials of its cases
    were valid, suspect, invalid, failed and so on."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """What all observations of a report have in common."""

    report: ReportSpec
    spec: Spec
    cases: Mapping[str, CaseSpec]
    models: Mapping[str, str | None]
    hosts: Mapping[UUID, Host]
    commits: Mapping[int, Commit]


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
    cells = tried(trials, metrics, merged)
    hosts = _hosts(member, spec, cells)
    scope = _scope(spec, definition, hosts, commits, metrics)
    seen = [*_measured(scope, cells, benchmark), *_published(member, scope, benchmark, metrics)]
    seen = chosen(seen, spec.cases, "cases")
    names, orders = _dimensions(scope, seen)
    _check_dimensions(spec, names)
    tables = tuple(
        pivot(spec, table, seen, orders=orders, axes=tuple(scope.spec.matrix))
        for table in spec.tables
    )
    versions = _versions(seen)
    return Report(
        spec=spec,
        benchmark=benchmark,
        definition=definition,
        commits=tuple(commits),
        hosts=tuple(hosts),
        tables=tables,
        notes=_notes(versions),
        trials=tuple(pk for each in seen for pk in each.trials),
        versions=versions,
        outcomes=Counter(
            sample.validity or sample.state for each in seen for sample in each.samples
        ),
        run=run,
    )


def benchmark_of(member: Member, spec: ReportSpec) -> Benchmark:
    """The benchmark that a report is of; NotFoundError where it names none of the team's."""
    if not spec.benchmark:
        raise InvalidRequestError("benchmark: name the benchmark to report on", field="benchmark")
    project, _, slug = spec.benchmark.rpartition("/")
    return benchmark_for(member, slug, project or None)


def _commits(member: Member, benchmark: Benchmark, asked: str, run: Run | None) -> Sequence[Commit]:
    if run is not None:
        return [variant.commit for variant in run.variants.select_related("commit")]
    measured = commits_measured(member, benchmark)
    if asked == "all":
        return measured[:MAX_COMMITS]
    if asked == "newest":
        return measured[:1]
    found = [each for each in measured if len(asked) >= 7 and each.sha.startswith(asked.lower())]
    if len(found) == 1:
        return found
    # A name: what it means is known since the last fetch, and a page must not wait for another.
    try:
        sha = repository_of(benchmark.project).resolve(asked)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"commit: {error}", field="commit") from error
    named = [each for each in measured if each.sha == sha]
    if not named:
        raise NotFoundError(f"nothing of {benchmark.slug} was measured at {asked} ({sha[:10]})")
    return named


def _trials(
    member: Member, benchmark: Benchmark, commits: Sequence[Commit], run: Run | None
) -> QuerySet[Trial]:
    trials = Trial.objects.filter(
        job__run__team=member.team,
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


def _hosts(member: Member, spec: ReportSpec, cells: Collection[CellKey]) -> list[Host]:
    """Those that were at work, or those that are asked for, by name."""
    hosts = Host.objects.filter(team=member.team).select_related("profile").order_by("name")
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


def _scope(
    report: ReportSpec,
    definition: Definition,
    hosts: Sequence[Host],
    commits: Sequence[Commit],
    metrics: Collection[str],
) -> _Scope:
    spec = spec_of(definition)
    cases = {case.key: case for case in expand(spec)}
    latency = any(key.startswith("latency.") for key in metrics)
    return _Scope(
        report=report,
        spec=spec,
        cases=cases,
        models={key: _model(spec, case) if latency else None for key, case in cases.items()},
        hosts={host.pk: host for host in hosts},
        commits={commit.pk: commit for commit in commits},
    )


def _model(spec: Spec, case: CaseSpec) -> str | None:
    if why_unsupported(spec, case.parameters):
        return None
    try:
        return model_of(load_specs_of(spec, case.parameters))
    except (InvalidRequestError, KeyError):
        return None


def _measured(
    scope: _Scope, cells: Mapping[CellKey, Tried], benchmark: Benchmark
) -> Iterator[Observation]:
    """One for each case on each host at each commit, whether it was measured or not."""
    keys = dict(Case.objects.filter(benchmark=benchmark).values_list("key", "pk"))
    nowhere: list[UUID | None] = [None]
    for commit in scope.commits or [0]:
        for host in [*scope.hosts] or nowhere:
            for key, case in scope.cases.items():
                found = cells.get((host, keys.get(key, 0), commit))
                yield _observation(scope, case, host, commit, found)


def _observation(
    scope: _Scope, case: CaseSpec, host: UUID | None, commit: int, found: Tried | None
) -> Observation:
    where = scope.hosts[host] if host else None
    at = scope.commits.get(commit)
    fixed = ("measured", str(host), commit)
    return Observation(
        place={
            **labels_of(scope.spec, case.parameters),
            **case.parameters,
            "host": where.name if where else "",
            "profile": where.profile.slug if where else "",
            "commit": at.short_sha if at else "",
            "source": MEASURED,
        },
        rest=_rest(scope.spec, case.parameters, fixed),
        baseline=is_baseline(scope.spec, case.parameters),
        unsupported=_unsupported(scope.spec, case.parameters),
        samples=found.samples if found else (),
        merged=found.merged if found else {},
        model=scope.models[case.key],
        trials=found.trials if found else (),
        version=found.version if found else None,
    )


def _rest(spec: Spec, parameters: Mapping[str, Scalar], fixed: Hashable) -> Hashable:
    """What a case shares with its baseline case: all but the axes that the baseline fixes."""
    others = [
        (axis, shown_value(value))
        for axis, value in parameters.items()
        if axis not in spec.baseline
    ]
    return (fixed, *sorted(others))


def _unsupported(spec: Spec, parameters: Mapping[str, Scalar]) -> str:
    """The reason that the definition gives, and what took its place."""
    why = why_unsupported(spec, parameters)
    heirs = [
        shown_value(option.replacement)
        for option in options_of(spec, parameters).values()
        if option.unsupported and option.replacement is not None
    ]
    return f"{why} (see {', '.join(heirs)})" if heirs else why


def _published(
    member: Member, scope: _Scope, benchmark: Benchmark, metrics: Collection[str]
) -> list[Observation]:
    """What others measured of these cases: one for each machine."""
    if scope.report.published == "none":
        return []
    found: dict[tuple[str, Hashable], tuple[dict[str, Scalar], dict[str, float]]] = {}
    for each in reference_values(member.team, suite=benchmark.slug):
        parameters = _ours(scope.spec, each.parameters)
        key = (each.profile, tuple(sorted((a, shown_value(v)) for a, v in parameters.items())))
        _, values = found.setdefault(key, (parameters, {}))
        if each.value is not None and each.metric in metrics:
            values[each.metric] = each.value / _factor(each.metric, each.unit)
    return [
        _reference(scope.spec, profile, parameters, values)
        for (profile, _), (parameters, values) in found.items()
        if values
    ]


def _ours(spec: Spec, parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """With the values as the axes have them: a file knows no numbers."""
    known = {
        axis: {shown_value(value): value for value in spec.values_of(axis)} for axis in spec.matrix
    }
    return {
        axis: known.get(axis, {}).get(shown_value(value), value)
        for axis, value in parameters.items()
    }


def _factor(key: str, unit: str) -> float:
    """How many of `unit` are one of the metric's own."""
    info = known_metric(key)
    return SCALES.get(info.unit, {}).get(unit, 1.0) if info and unit else 1.0


def _reference(
    spec: Spec, profile: str, parameters: Mapping[str, Scalar], values: Mapping[str, float]
) -> Observation:
    return Observation(
        place={
            **labels_of(spec, parameters),
            **parameters,
            "host": profile,
            "profile": profile,
            "commit": "",
            "source": PUBLISHED,
        },
        rest=_rest(spec, parameters, ("published", profile)),
        baseline=is_baseline(spec, parameters),
        published=values,
    )


def _dimensions(
    scope: _Scope, seen: Sequence[Observation]
) -> tuple[list[str], dict[str, list[str]]]:
    """All dimensions, and the values of each in order: as the definition has them."""
    axes = {axis: list(map(shown_value, scope.spec.values_of(axis))) for axis in scope.spec.matrix}
    labels: dict[str, dict[str, None]] = {}
    for case in scope.cases.values():
        for name, text in labels_of(scope.spec, case.parameters).items():
            labels.setdefault(name, {})[text] = None
    own = {
        "host": sorted({each.at("host") for each in seen}),
        "profile": sorted({each.at("profile") for each in seen}),
        "commit": [commit.short_sha for commit in scope.commits.values()],
        "source": [MEASURED, PUBLISHED],
    }
    orders = {**{name: [*texts] for name, texts in labels.items()}, **axes, **own}
    return [*orders, "metric"], orders


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
