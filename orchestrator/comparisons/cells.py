"""The cells of two sides: which places are put beside each other, and what does not count."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.benchmarks.models import Benchmark, Case
from orchestrator.comparisons.blocks import Cell, Key, blocks_of_run, cells_of
from orchestrator.comparisons.compared import CaseName, HostName
from orchestrator.comparisons.exclusions import (
    Doubtful,
    Exclusions,
    RunOfBoth,
    by_place,
    count_exclusions,
    only_void,
    summed,
)
from orchestrator.comparisons.mismatches import Names
from orchestrator.comparisons.packed_cells import packed_cells
from orchestrator.comparisons.points import Counts, Found, Likeness, Place, points_of
from orchestrator.comparisons.provenance import Hows, hows_of
from orchestrator.comparisons.run_values import points_of_run
from orchestrator.comparisons.sides import Side
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run
from orchestrator.stats.many import Brief


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """`exclusions[i]` is of `cells[i]`; `void` are places of which no block counts.

    `one_sided`: cases that only one of the sides measured. `version`: of the definition that
    counts, where points of others were left out.
    """

    cells: Sequence[Cell]
    exclusions: Sequence[Exclusions]
    void: Mapping[Place, Exclusions]
    names: Names
    one_sided: int
    version: int | None


def cells_between(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    runs: Sequence[RunOfBoth],
    doubtful: Sequence[Doubtful],
    *,
    run: Run | None,
    metrics: Collection[str] | None,
) -> Cells:
    """All cells of two sides, with their names. None at all where they have none in common."""
    found = _points(benchmark, sides, run, metrics)
    places = {*found[0], *found[1], *(each.place for each in doubtful)}
    names = _names(benchmark, {place.host for place in places})
    only = None if run is None else blocks_of_run(run)
    one_commit = sides[0].commit == sides[1].commit
    keys = _keys(sides, names)
    cells = cells_of(*found, keys=keys, only=only, one_commit=one_commit)
    void = {} if keys or one_commit else _void(doubtful, cells, sides)
    if not (cells or void or run) and all(side.place == (None, None) for side in sides):
        keys = _anywhere(keys)
        cells = cells_of(*found, keys=keys, only=only, one_commit=one_commit)
    commits, doubted = (sides[0].commit.pk, sides[1].commit.pk), by_place(doubtful)
    newest = runs[0].version if runs else None
    exclusions = [count_exclusions(cell, commits, doubted, newest) for cell in cells]
    if run is not None:
        counted = [i for i, cell in enumerate(cells) if cell.metrics or exclusions[i].excluded]
        cells, exclusions = [cells[i] for i in counted], [exclusions[i] for i in counted]
    else:
        cells = [_settled(cell, each) for cell, each in zip(cells, exclusions, strict=True)]
    return Cells(
        cells=cells,
        exclusions=exclusions,
        void=void,
        names=names,
        one_sided=_one_sided(found, cells),
        version=newest,
    )


def usual_cells(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    runs: Sequence[RunOfBoth],
    doubtful: Sequence[Doubtful],
    metrics: Collection[str],
) -> tuple[Cells, Mapping[str, Mapping[str, Brief]]] | None:
    """All cells of two commits with their comparisons, where every one is of the usual kind.

    See `packed_cells`; and none of the trials is in doubt.
    """
    plain = (Side(commit=sides[0].commit), Side(commit=sides[1].commit))
    if sides != plain or doubtful:
        return None
    packed = packed_cells(benchmark, sides[0].commit, sides[1].commit, metrics)
    if packed is None:
        return None
    cells = Cells(
        cells=packed.cells,
        exclusions=[Exclusions()] * len(packed.cells),
        void={},
        names=_names(benchmark, {cell.baseline[0].place.host for cell in packed.cells}),
        one_sided=0,
        version=runs[0].version if runs else None,
    )
    return cells, packed.compared


def _settled(cell: Cell, exclusions: Exclusions) -> Cell:
    """Where all blocks of both are void, nothing is compared: other trials are no way around it."""
    if cell.paired or not exclusions.excluded:
        return cell
    return replace(cell, paired=True, metrics={}, blocks=(frozenset(), frozenset()))


def _points(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    run: Run | None,
    metrics: Collection[str] | None,
) -> tuple[Found, Found]:
    first, second = places = _chosen(benchmark, sides[0]), _chosen(benchmark, sides[1])
    if run is not None:
        return points_of_run(benchmark, sides, run, metrics=metrics, places=places)
    return (
        points_of(benchmark, sides[0], metrics=metrics, places=first),
        points_of(benchmark, sides[1], metrics=metrics, places=second),
    )


def _chosen(benchmark: Benchmark, side: Side) -> Counts | None:
    """What counts of a side of one tool or of one version of the definition."""
    if not side.tool and side.definition is None:
        return None
    cases = None if side.case is None else [side.case.pk]
    hows: Hows = hows_of(benchmark, side.commit, cases=cases, version=side.definition)

    def counts(place: Place, likeness: Likeness) -> bool:
        how = hows.get((place, likeness.configuration))
        return how is not None and side.tool in ("", how.tool)

    return counts


def _keys(sides: tuple[Side, Side], names: Names) -> tuple[Key, Key] | None:
    """What places are matched by; None where they are by themselves."""
    same_place = sides[0].place == sides[1].place
    same_case = sides[0].case == sides[1].case
    same_tool = sides[0].tool == sides[1].tool
    if same_place and same_case and same_tool:
        return None

    def key(side: Side) -> Key:
        def of(place: Place) -> object:
            case: object = place.case if same_case else None
            if same_case and not same_tool:
                case = _without(names.cases[place.case], side.tool)
            return (place.host if same_place else None, case)

        return of

    return key(sides[0]), key(sides[1])


def _without(case: CaseName, tool: str) -> frozenset[tuple[str, object]]:
    """The parameters of a case but for the axis of its tool."""
    return frozenset((axis, value) for axis, value in case.parameters.items() if value != tool)


def _anywhere(keys: tuple[Key, Key] | None) -> tuple[Key, Key]:
    """The same, whatever the host."""
    before, after = keys or (tuple, tuple)
    return (lambda place: _rest(before(place))), (lambda place: _rest(after(place)))


def _rest(key: object) -> object:
    assert isinstance(key, tuple)
    return key[1:]


def _names(benchmark: Benchmark, hosts: Collection[str]) -> Names:
    cases = Case.objects.filter(benchmark=benchmark).order_by()
    rows = cases.values_list("pk", "key", "label", "parameters")
    named = Host.objects.filter(pk__in=hosts).order_by()
    return Names(
        cases={
            pk: CaseName(pk=pk, key=key, label=label, parameters=parameters)
            for pk, key, label, parameters in rows
        },
        hosts={
            str(pk): HostName(pk=pk, name=name, profile=profile)
            for pk, name, profile in named.values_list("pk", "name", "profile__name")
        },
    )


def _void(
    doubtful: Sequence[Doubtful], cells: Sequence[Cell], sides: tuple[Side, Side]
) -> dict[Place, Exclusions]:
    """Places that the sides ask for, where every block is void."""
    found = only_void(doubtful, cells)
    case, host = sides[0].case, sides[0].host
    return {
        place: summed(trials, ())
        for place, trials in found.items()
        if (case is None or case.pk == place.case) and (host is None or str(host.pk) == place.host)
    }


def _one_sided(found: tuple[Found, Found], cells: Sequence[Cell]) -> int:
    matched = (
        {each.place.case for cell in cells for each in cell.baseline},
        {each.place.case for cell in cells for each in cell.contender},
    )
    return sum(
        len({place.case for place in side} - known)
        for side, known in zip(found, matched, strict=True)
    )
