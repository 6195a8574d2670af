"""Selects the cases that two sides have in common, and counts what is excluded from them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from orchestrator.benchmarks.models import Benchmark, Case
from orchestrator.comparisons.exclusions import (
    Exclusions,
    FlaggedTrial,
    SharedRun,
    count_exclusions,
    find_excluded_cases,
    group_flagged_trials,
    sum_exclusions,
)
from orchestrator.comparisons.mismatches import Names
from orchestrator.comparisons.pairing import (
    PairedCase,
    PairingKey,
    list_all_blocks,
    list_possible_blocks,
    load_block_runs,
    pair_cases,
)
from orchestrator.comparisons.points import (
    CaseOnHost,
    ComparabilityKey,
    PointFilter,
    PointIndex,
    load_points,
    load_run_points,
)
from orchestrator.comparisons.provenance import load_provenance
from orchestrator.comparisons.report import CaseName, HostName
from orchestrator.comparisons.sides import Side
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """`exclusions[i]` is of `cases[i]`; in `excluded_cases` no block counts.

    `one_sided`: the number of cases that only one of the sides measured. If the sides differ in the
    commit alone, these are among the `excluded_cases`. `version`: if points of several versions of
    the definition were found, only those of this one count. `block_runs`: block → its run, for the
    cases that are not paired.
    """

    cases: Sequence[PairedCase]
    exclusions: Sequence[Exclusions]
    excluded_cases: Mapping[CaseOnHost, Exclusions]
    names: Names
    one_sided: int
    version: int | None
    block_runs: Mapping[int, UUID] = field(default_factory=dict)


def select_cases(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    runs: Sequence[SharedRun],
    flagged: Sequence[FlaggedTrial],
    *,
    run: Run | None,
    metrics: Collection[str] | None,
) -> Selection:
    """All cases of both sides, with their names; none if they have no case in common.

    `run`: only its measurements count. `metrics`: only these keys are read.
    """
    points = _load_points(benchmark, sides, run, metrics)
    places = {*points[0], *points[1], *(trial.place for trial in flagged)}
    selection = build_selection(
        points,
        _load_names(benchmark, {place.host for place in places}),
        sides,
        flagged,
        version=runs[0].version if runs else None,
        only=None if run is None else list_possible_blocks(run),
    )
    if all(case.paired for case in selection.cases):
        return selection
    commits = {side.commit for side in sides}
    return replace(selection, block_runs=load_block_runs(benchmark, commits))


def build_selection(
    points: tuple[PointIndex, PointIndex],
    names: Names,
    sides: tuple[Side, Side],
    flagged: Sequence[FlaggedTrial],
    *,
    version: int | None,
    only: Collection[int] | None = None,
) -> Selection:
    """The cases of these points and trials. `only`: other blocks do not count."""
    cases, excluded = _pair_points(points, sides, names, only, flagged)
    commits = sides[0].commit.pk, sides[1].commit.pk
    by_place = group_flagged_trials(flagged)
    exclusions = [count_exclusions(case, commits, by_place, version) for case in cases]
    if only is not None:
        counted = [i for i, case in enumerate(cases) if case.metrics or exclusions[i].excluded]
        cases, exclusions = [cases[i] for i in counted], [exclusions[i] for i in counted]
    else:
        cases = list(map(_without_unpaired_values, cases, exclusions))
    one_sided = [place for place in _list_one_sided(points, cases, only) if place not in excluded]
    if (cases or excluded) and _differ_in_commit_only(sides):
        excluded |= dict.fromkeys(one_sided, Exclusions())
    return Selection(
        cases=cases,
        exclusions=exclusions,
        excluded_cases=excluded,
        names=names,
        one_sided=len({place.case for place in one_sided}),
        version=version,
    )


def _pair_points(
    points: tuple[PointIndex, PointIndex],
    sides: tuple[Side, Side],
    names: Names,
    only: Collection[int] | None,
    flagged: Sequence[FlaggedTrial],
) -> tuple[list[PairedCase], dict[CaseOnHost, Exclusions]]:
    """The paired cases, and the cases without a block that counts.

    Sides without a common host are paired by case alone, unless they name hosts.
    """
    one_commit = sides[0].commit == sides[1].commit
    keys = _build_pairing_keys(sides, names)
    cases = pair_cases(*points, keys=keys, only=only, one_commit=one_commit)
    excluded = (
        {} if not _differ_in_commit_only(sides) else _find_excluded_cases(flagged, cases, sides)
    )
    any_hosts = only is None and all(side.hosts == (None, None) for side in sides)
    if any_hosts and not (cases or excluded):
        keys = _without_host(keys)
        cases = pair_cases(*points, keys=keys, only=only, one_commit=one_commit)
    return cases, excluded


def _without_unpaired_values(case: PairedCase, exclusions: Exclusions) -> PairedCase:
    """If all shared blocks are excluded, nothing is compared: other trials do not replace them."""
    if case.paired or not exclusions.excluded:
        return case
    return replace(
        case, paired=True, metrics={}, blocks=(frozenset(), frozenset()), value_blocks={}
    )


def _load_points(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    run: Run | None,
    metrics: Collection[str] | None,
) -> tuple[PointIndex, PointIndex]:
    first, second = filters = _filter(benchmark, sides[0]), _filter(benchmark, sides[1])
    if run is not None:
        return load_run_points(benchmark, sides, run, metrics=metrics, filters=filters)
    return (
        load_points(benchmark, sides[0], metrics=metrics, counts=first),
        load_points(benchmark, sides[1], metrics=metrics, counts=second),
    )


def _filter(benchmark: Benchmark, side: Side) -> PointFilter | None:
    """Return a filter for the tool and the version of the definition that the side names."""
    if not side.tool and side.definition is None:
        return None
    cases = None if side.case is None else [side.case.pk]
    index = load_provenance(benchmark, side.commit, cases=cases, version=side.definition)

    def counts(place: CaseOnHost, comparability: ComparabilityKey) -> bool:
        provenance = index.get((place, comparability.configuration))
        return provenance is not None and side.tool in ("", provenance.tool)

    return counts


def _compare_keys(sides: tuple[Side, Side]) -> tuple[bool, bool, bool]:
    """Return whether the sides are of the same hosts, case and tool."""
    before, after = sides
    return before.hosts == after.hosts, before.case == after.case, before.tool == after.tool


def _differ_in_commit_only(sides: tuple[Side, Side]) -> bool:
    return sides[0].commit != sides[1].commit and all(_compare_keys(sides))


def _build_pairing_keys(
    sides: tuple[Side, Side], names: Names
) -> tuple[PairingKey, PairingKey] | None:
    """The keys without what the sides differ in; None if they are of the same hosts and cases."""
    same_hosts, same_case, same_tool = _compare_keys(sides)
    if same_hosts and same_case and same_tool:
        return None

    def pairing_key(side: Side) -> PairingKey:
        def key(place: CaseOnHost) -> object:
            case: object = place.case if same_case else None
            if same_case and not same_tool:
                case = _drop_parameter(names.cases[place.case], side.tool)
            return (place.host if same_hosts else None, case)

        return key

    return pairing_key(sides[0]), pairing_key(sides[1])


def _drop_parameter(case: CaseName, tool: str) -> frozenset[tuple[str, object]]:
    return frozenset((axis, value) for axis, value in case.parameters.items() if value != tool)


def _without_host(
    keys: tuple[PairingKey, PairingKey] | None,
) -> tuple[PairingKey, PairingKey]:
    before, after = keys or (tuple, tuple)
    return (lambda place: _get_case_part(before(place))), (
        lambda place: _get_case_part(after(place))
    )


def _get_case_part(key: object) -> object:
    assert isinstance(key, tuple)
    return key[1:]


def _load_names(benchmark: Benchmark, hosts: Collection[str]) -> Names:
    cases = Case.objects.filter(benchmark=benchmark).order_by()
    rows = cases.values_list("pk", "key", "label", "parameters")
    measured_on = Host.objects.filter(pk__in=hosts).order_by()
    return Names(
        cases={
            pk: CaseName(pk=pk, key=key, label=label, parameters=parameters)
            for pk, key, label, parameters in rows
        },
        hosts={
            str(pk): HostName(pk=pk, name=name, profile=profile)
            for pk, name, profile in measured_on.values_list("pk", "name", "profile__name")
        },
    )


def _find_excluded_cases(
    flagged: Sequence[FlaggedTrial], cases: Sequence[PairedCase], sides: tuple[Side, Side]
) -> dict[CaseOnHost, Exclusions]:
    """Return the requested cases without a block that counts."""
    case, host = sides[0].case, sides[0].host
    by_side = group_flagged_trials(flagged)
    before, after = (side.commit.pk for side in sides)
    return {
        place: sum_exclusions(by_side.get((before, place), ()), by_side.get((after, place), ()), ())
        for place in find_excluded_cases(flagged, cases)
        if (case is None or case.pk == place.case) and (host is None or str(host.pk) == place.host)
    }


def _list_one_sided(
    points: tuple[PointIndex, PointIndex],
    cases: Sequence[PairedCase],
    only: Collection[int] | None,
) -> list[CaseOnHost]:
    """Return where a side measured a case that is not compared anywhere. `only`: other blocks do
    not count."""
    compared = (
        {group.place.case for case in cases for group in case.baseline},
        {group.place.case for case in cases for group in case.contender},
    )
    return [
        place
        for side, matched in zip(points, compared, strict=True)
        for place, groups in side.items()
        if place.case not in matched
        and (only is None or not list_all_blocks(*groups.values()).isdisjoint(only))
    ]
