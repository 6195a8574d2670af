"""What is not like for like between the two sides of a comparison, said in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.versions import diff_lines
from orchestrator.comparisons.blocks import Cell
from orchestrator.comparisons.compared import CaseName, HostName, Mismatch
from orchestrator.comparisons.points import Measured
from orchestrator.comparisons.provenance import How, Hows, hows_of
from orchestrator.comparisons.sides import Side
from orchestrator.fleet.models import HostChange

#: Of so many different cells it is told how they were measured.
_MOST_LOOKED_AT = 20
_OTHER_LOOP = (
    "in a closed loop slow answers delay the next request, so its latencies leave waiting out: "
    "they are not judged against those of an open loop"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What cells are called."""

    cases: Mapping[int, CaseName]
    hosts: Mapping[str, HostName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatches:
    """`withheld`: places in the cells of those whose latencies cannot be judged."""

    found: tuple[Mismatch, ...] = ()
    withheld: frozenset[int] = frozenset()


def find_mismatches(
    benchmark: Benchmark, sides: tuple[Side, Side], cells: Sequence[Cell], names: Names
) -> Mismatches:
    """All differences of these cells, each once. Cells that are alike and paired have none."""
    odd = [place for place, cell in enumerate(cells) if not (cell.alike and cell.paired)]
    if not odd:
        return Mismatches()
    found = [each for place in odd for each in _of_places(cells[place], names)]
    kinds = _kinds(cells, odd)
    sampled = {each[0] for each in list(kinds.values())[:_MOST_LOOKED_AT]}
    hows = _hows(benchmark, sides, [cells[place] for place in sampled])
    withheld: set[int] = set()
    for places in kinds.values():
        first = cells[places[0]]
        before, after = _how(first.baseline, hows[0]), _how(first.contender, hows[1])
        found += _of_ways(first, before, after)
        if before is not None and after is not None and before.loop != after.loop:
            withheld.update(places)
    return Mismatches(found=tuple(dict.fromkeys(found)), withheld=frozenset(withheld))


def _kinds(cells: Sequence[Cell], places: Sequence[int]) -> dict[object, list[int]]:
    """Cells that were measured in the same two ways are of one kind."""
    found: dict[object, list[int]] = {}
    for place in places:
        cell = cells[place]
        sides = (cell.baseline, cell.contender)
        kind = tuple(
            (each[0].place.host, each[0].likeness.configuration, each[0].place.case)
            for each in sides
        )
        same_case = kind[0][2] == kind[1][2]
        found.setdefault(tuple(each[:2] for each in kind) if same_case else kind, []).append(place)
    return found


def _hows(
    benchmark: Benchmark, sides: tuple[Side, Side], cells: Sequence[Cell]
) -> tuple[Hows, Hows]:
    before = {each.place.case for cell in cells for each in cell.baseline}
    after = {each.place.case for cell in cells for each in cell.contender}
    return (
        hows_of(benchmark, sides[0].commit, cases=before),
        hows_of(benchmark, sides[1].commit, cases=after),
    )


def _how(side: Sequence[Measured], hows: Hows) -> How | None:
    return hows.get((side[0].place, side[0].likeness.configuration)) if side else None


def _of_places(cell: Cell, names: Names) -> Iterator[Mismatch]:
    before, after = ([names.hosts[each.place.host] for each in side]
                     for side in (cell.baseline, cell.contender))  # fmt: skip
    if {each.pk for each in before} != {each.pk for each in after}:
        yield Mismatch(
            what="host",
            baseline=_listed(each.name for each in before),
            contender=_listed(each.name for each in after),
            reason="another machine: the difference is that of the machines as well",
        )
        profiles = [_listed(each.profile for each in side) for side in (before, after)]
        if profiles[0] != profiles[1]:
            yield Mismatch(
                what="profile",
                baseline=profiles[0],
                contender=profiles[1],
                reason="another kind of hardware",
            )
    elif len(before) == 1 and _epochs(cell)[0] != _epochs(cell)[1]:
        yield _epoch(before[0], *_epochs(cell))
    yield from _of_cases(cell, names)


def _epochs(cell: Cell) -> tuple[int, int]:
    return cell.baseline[0].likeness.epoch, cell.contender[0].likeness.epoch


def _epoch(host: HostName, before: int, after: int) -> Mismatch:
    first, last = sorted((before, after))
    changes = HostChange.objects.filter(host=host.pk).order_by("at")[first:last]
    facts = list(dict.fromkeys(fact for change in changes for fact in change.changed))
    what = f" ({', '.join(facts)})" if facts else ""
    return Mismatch(
        what="epoch",
        baseline=f"{host.name}, epoch {before}",
        contender=f"{host.name}, epoch {after}",
        reason=f"the host changed in between{what}: it is not the same machine any more",
    )


def _of_cases(cell: Cell, names: Names) -> Iterator[Mismatch]:
    before, after = (names.cases[side[0].place.case] for side in (cell.baseline, cell.contender))
    if before.pk == after.pk:
        return
    axes = dict.fromkeys((*before.parameters, *after.parameters))
    differ = [axis for axis in axes if before.parameters.get(axis) != after.parameters.get(axis)]
    yield Mismatch(
        what="case",
        baseline=before.label,
        contender=after.label,
        reason=f"other work was measured: {', '.join(differ) or 'another case'} differs",
    )


def _of_ways(cell: Cell, before: How | None, after: How | None) -> Iterator[Mismatch]:
    configurations = (
        cell.baseline[0].likeness.configuration,
        cell.contender[0].likeness.configuration,
    )
    if before is None or after is None:
        if configurations[0] != configurations[1]:
            yield Mismatch(
                what="definition",
                baseline=_way(before),
                contender=_way(after),
                reason="measured in another way; in which is not known any more, or was never told",
            )
        return
    yield from _of_definitions(configurations, before, after)
    texts = {
        "tool": "another load tool measures in another way",
        "tool_version": "another version of the load tool may measure in another way",
        "loop": _OTHER_LOOP,
        "protocol": "another protocol is another work for both sides",
        "network": "over loopback there is no network, and both share one machine",
    }
    for attribute, reason in texts.items():
        first, second = getattr(before, attribute), getattr(after, attribute)
        if first == second or (attribute == "tool_version" and before.tool != after.tool):
            continue
        yield Mismatch(
            what=attribute.replace("_", " "),
            baseline=first or "unknown",
            contender=second or "unknown",
            reason=reason,
        )


def _of_definitions(configurations: tuple[int, int], before: How, after: How) -> Iterator[Mismatch]:
    old, new = before.definition, after.definition
    if configurations[0] == configurations[1] or old.pk == new.pk:
        return
    yield Mismatch(
        what="definition",
        baseline=f"version {old.version}",
        contender=f"version {new.version}",
        reason="the two versions do not measure this the same way",
        diff=tuple(diff_lines(old.source, new.source)),
    )


def _way(how: How | None) -> str:
    return "unknown" if how is None else f"version {how.definition.version}"


def _listed(names: Iterator[str]) -> str:
    return ", ".join(sorted(dict.fromkeys(names)))
