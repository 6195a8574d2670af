"""Measurements and reference results as observations, the input of a pivot."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.benchmarks.contests import get_contest_key
from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.benchmarks.load_specs import build_load_specs
from orchestrator.benchmarks.matrix import (
    CaseSpec,
    build_labels,
    expand,
    find_unsupported_reason,
    is_baseline,
    select_options,
)
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import Host
from orchestrator.measurements.selectors import get_load_model
from orchestrator.reports.pivot_model import MEASURED, PUBLISHED, Observation, Origin
from orchestrator.reports.pivot_trials import CellKey, TriedCell
from orchestrator.reports.references import load_reference_values
from orchestrator.reports.report_spec import ReportSpec
from orchestrator.reports.spec_fields import find_known_metric
from orchestrator.reports.units import SCALES


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The common data of all observations of a report."""

    report: ReportSpec
    spec: Spec
    cases: Mapping[str, CaseSpec]
    models: Mapping[str, str | None]
    hosts: Mapping[UUID, Host]
    commits: Mapping[int, Commit]


def build_scope(
    report: ReportSpec,
    definition: Definition,
    hosts: Sequence[Host],
    commits: Sequence[Commit],
    metrics: Collection[str],
) -> Scope:
    spec = read_spec(definition)
    cases = {case.key: case for case in expand(spec)}
    latency = any(key.startswith("latency.") for key in metrics)
    return Scope(
        report=report,
        spec=spec,
        cases=cases,
        models={key: _get_model(spec, case) if latency else None for key, case in cases.items()},
        hosts={host.pk: host for host in hosts},
        commits={commit.pk: commit for commit in commits},
    )


def _get_model(spec: Spec, case: CaseSpec) -> str | None:
    if find_unsupported_reason(spec, case.parameters):
        return None
    try:
        return get_load_model(build_load_specs(spec, case.parameters))
    except (InvalidRequestError, KeyError):
        return None


def load_observations(
    scope: Scope, cells: Mapping[CellKey, TriedCell], benchmark: Benchmark
) -> Iterator[Observation]:
    """Return an observation for each case, host and commit, even if it was not measured."""
    keys = dict(Case.objects.filter(benchmark=benchmark).values_list("key", "pk"))
    nowhere: list[UUID | None] = [None]
    for commit in scope.commits or [0]:
        for host in [*scope.hosts] or nowhere:
            for key, case in scope.cases.items():
                pk = keys.get(key, 0)
                cell = cells.get((host, pk, commit))
                yield _build_observation(scope, case, host, commit, cell, pk)


def _build_observation(
    scope: Scope, case: CaseSpec, host: UUID | None, commit: int, cell: TriedCell | None, pk: int
) -> Observation:
    where = scope.hosts[host] if host else None
    at = scope.commits.get(commit)
    fixed = ("measured", str(host), commit)
    return Observation(
        place={
            **build_labels(scope.spec, case.parameters),
            **case.parameters,
            "host": where.name if where else "",
            "profile": where.profile.slug if where else "",
            "commit": at.short_sha if at else "",
            "source": MEASURED,
        },
        rest=_build_rest(scope.spec, case.parameters, fixed),
        baseline=is_baseline(scope.spec, case.parameters),
        unsupported=_find_unsupported_reason(scope.spec, case.parameters),
        samples=cell.samples if cell else (),
        merged=cell.merged if cell else {},
        model=scope.models[case.key],
        trials=cell.trials if cell else (),
        version=cell.version if cell else None,
        epoch=cell.epoch if cell else 0,
        tool=cell.tool if cell else "",
        other_trials=cell.other_trials if cell else 0,
        origin=Origin(pk, host, commit) if cell and host else None,
        contest=_build_contest(scope.spec, case.parameters, fixed),
    )


def _build_rest(spec: Spec, parameters: Mapping[str, Scalar], fixed: Hashable) -> Hashable:
    """Return what a case shares with its baseline case: the axes that the baseline does not fix."""
    others = [
        (axis, format_axis_value(value))
        for axis, value in parameters.items()
        if axis not in spec.baseline
    ]
    return (fixed, *sorted(others))


def _build_contest(
    spec: Spec, parameters: Mapping[str, Scalar], fixed: Hashable
) -> Hashable | None:
    """Return what the values of a contest share; None without a contest axis."""
    return (fixed, get_contest_key(spec.contest, parameters)) if spec.contest else None


def _find_unsupported_reason(spec: Spec, parameters: Mapping[str, Scalar]) -> str:
    """Return the reason in the definition, and the replacement."""
    why = find_unsupported_reason(spec, parameters)
    heirs = [
        format_axis_value(option.replacement)
        for option in select_options(spec, parameters).values()
        if option.unsupported and option.replacement is not None
    ]
    return f"{why} (see {', '.join(heirs)})" if heirs else why


def load_reference_observations(
    scope: Scope, benchmark: Benchmark, metrics: Collection[str]
) -> list[Observation]:
    """Return the reference results of these cases, one for each machine."""
    if scope.report.published == "none":
        return []
    results: dict[tuple[str, Hashable], tuple[dict[str, Scalar], dict[str, float]]] = {}
    for each in load_reference_values(benchmark.project.team, suite=benchmark.slug):
        parameters = _convert_axis_values(scope.spec, each.parameters)
        key = (
            each.profile,
            tuple(sorted((a, format_axis_value(v)) for a, v in parameters.items())),
        )
        _, values = results.setdefault(key, (parameters, {}))
        if each.value is not None and each.metric in metrics:
            values[each.metric] = each.value / _find_unit_factor(each.metric, each.unit)
    return [
        _build_reference_observation(scope.spec, profile, parameters, values)
        for (profile, _), (parameters, values) in results.items()
        if values
    ]


def _convert_axis_values(spec: Spec, parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Convert the parameters to the values of the axes: files have text only."""
    known = {
        axis: {format_axis_value(value): value for value in spec.list_values(axis)}
        for axis in spec.matrix
    }
    return {
        axis: known.get(axis, {}).get(format_axis_value(value), value)
        for axis, value in parameters.items()
    }


def _find_unit_factor(key: str, unit: str) -> float:
    """Return how many of `unit` are one of the metric's own unit."""
    info = find_known_metric(key)
    return SCALES.get(info.unit, {}).get(unit, 1.0) if info and unit else 1.0


def _build_reference_observation(
    spec: Spec, profile: str, parameters: Mapping[str, Scalar], values: Mapping[str, float]
) -> Observation:
    return Observation(
        place={
            **build_labels(spec, parameters),
            **parameters,
            "host": profile,
            "profile": profile,
            "commit": "",
            "source": PUBLISHED,
        },
        rest=_build_rest(spec, parameters, ("published", profile)),
        baseline=is_baseline(spec, parameters),
        published=values,
    )


def list_all_dimensions(
    scope: Scope, seen: Sequence[Observation]
) -> tuple[list[str], dict[str, list[str]]]:
    """Return all dimensions with their values, in the order of the definition."""
    axes = {
        axis: list(map(format_axis_value, scope.spec.list_values(axis)))
        for axis in scope.spec.matrix
    }
    labels: dict[str, dict[str, None]] = {}
    for case in scope.cases.values():
        for name, text in build_labels(scope.spec, case.parameters).items():
            labels.setdefault(name, {})[text] = None
    own = {
        "host": sorted({each.get_value("host") for each in seen}),
        "profile": sorted({each.get_value("profile") for each in seen}),
        "commit": [commit.short_sha for commit in scope.commits.values()],
        "source": [MEASURED, PUBLISHED],
    }
    orders = {**{name: [*texts] for name, texts in labels.items()}, **axes, **own}
    return [*orders, "metric"], orders
