"""Measurements and reference results as observations, the input of a pivot."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.fields import Scalar, shown_value
from orchestrator.benchmarks.loads import load_specs_of
from orchestrator.benchmarks.matrix import CaseSpec, expand, is_baseline
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.resolved import labels_of, options_of, why_unsupported
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import Host
from orchestrator.measurements.selectors import model_of
from orchestrator.reports.pivot_model import MEASURED, PUBLISHED, Observation, Origin
from orchestrator.reports.pivot_trials import CellKey, Tried
from orchestrator.reports.references import reference_values
from orchestrator.reports.report_spec import ReportSpec, known_metric
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


def scope_of(
    report: ReportSpec,
    definition: Definition,
    hosts: Sequence[Host],
    commits: Sequence[Commit],
    metrics: Collection[str],
) -> Scope:
    spec = spec_of(definition)
    cases = {case.key: case for case in expand(spec)}
    latency = any(key.startswith("latency.") for key in metrics)
    return Scope(
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


def measured(
    scope: Scope, cells: Mapping[CellKey, Tried], benchmark: Benchmark
) -> Iterator[Observation]:
    """Return an observation for each case, host and commit, even if it was not measured."""
    keys = dict(Case.objects.filter(benchmark=benchmark).values_list("key", "pk"))
    nowhere: list[UUID | None] = [None]
    for commit in scope.commits or [0]:
        for host in [*scope.hosts] or nowhere:
            for key, case in scope.cases.items():
                pk = keys.get(key, 0)
                found = cells.get((host, pk, commit))
                yield _observation(scope, case, host, commit, found, pk)


def _observation(
    scope: Scope, case: CaseSpec, host: UUID | None, commit: int, found: Tried | None, pk: int
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
        origin=Origin(pk, host, commit) if found and host else None,
    )


def _rest(spec: Spec, parameters: Mapping[str, Scalar], fixed: Hashable) -> Hashable:
    """Return what a case shares with its baseline case: the axes that the baseline does not fix."""
    others = [
        (axis, shown_value(value))
        for axis, value in parameters.items()
        if axis not in spec.baseline
    ]
    return (fixed, *sorted(others))


def _unsupported(spec: Spec, parameters: Mapping[str, Scalar]) -> str:
    """Return the reason in the definition, and the replacement."""
    why = why_unsupported(spec, parameters)
    heirs = [
        shown_value(option.replacement)
        for option in options_of(spec, parameters).values()
        if option.unsupported and option.replacement is not None
    ]
    return f"{why} (see {', '.join(heirs)})" if heirs else why


def published(
    member: Member, scope: Scope, benchmark: Benchmark, metrics: Collection[str]
) -> list[Observation]:
    """Return the reference results of these cases, one for each machine."""
    # Imported reference results belong to the team, not to the project that a visitor sees.
    if scope.report.published == "none" or isinstance(member, Visitor):
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
    """Convert the parameters to the values of the axes: files have text only."""
    known = {
        axis: {shown_value(value): value for value in spec.values_of(axis)} for axis in spec.matrix
    }
    return {
        axis: known.get(axis, {}).get(shown_value(value), value)
        for axis, value in parameters.items()
    }


def _factor(key: str, unit: str) -> float:
    """Return how many of `unit` are one of the metric's own unit."""
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


def dimensions_in(
    scope: Scope, seen: Sequence[Observation]
) -> tuple[list[str], dict[str, list[str]]]:
    """Return all dimensions with their values, in the order of the definition."""
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
