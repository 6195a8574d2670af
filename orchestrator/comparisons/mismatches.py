"""Find the mismatches of a comparison: what differs between the sides except the commit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.versions import compute_diff
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.points import PointGroup
from orchestrator.comparisons.provenance import Provenance, ProvenanceIndex, load_provenance
from orchestrator.comparisons.report import CaseName, HostName, Mismatch
from orchestrator.comparisons.sides import Side
from orchestrator.fleet.models import HostChange

#: The most configurations whose provenance is read.
_MAX_CONFIGURATIONS = 20
_OTHER_LOOP = (
    "in a closed loop slow answers delay the next request, so its latencies do not include "
    "waiting: they are not compared with those of an open loop"
)
_REASONS = {
    "tool": "different load tools measure in different ways",
    "tool_version": "different versions of the load tool may measure in different ways",
    "loop": _OTHER_LOOP,
    "protocol": "a different protocol means different work for server and client",
    "repositories": "different commits of another repository are a difference of their own",
    "network": "another network takes another time; over loopback there is none, and server and "
    "client share one machine",
    "generator_settings": "latencies include the time of the load tool, which depends on the "
    "clocks and settings of its machine",
    "cpu_placement": "other CPUs may have other caches, neighbours and clocks",
}
#: What an empty text means, where it is not unknown.
_NO_VALUE = {"repositories": "none", "generator_settings": "those of the server's host"}


#: Aspects that are settings of hosts, which only members see.
_OF_HOSTS = frozenset({"generator settings", "CPU placement"})
_HIDDEN = "not public"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of the cases and hosts, by id."""

    cases: Mapping[int, CaseName]
    hosts: Mapping[str, HostName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatches:
    """`withheld`: indexes of the cases with latencies that cannot be judged."""

    all: tuple[Mismatch, ...] = ()
    withheld: frozenset[int] = frozenset()


def find_mismatches(
    benchmark: Benchmark, sides: tuple[Side, Side], cases: Sequence[PairedCase], names: Names
) -> Mismatches:
    """All mismatches of these cases, each once. Comparable and paired cases have none."""
    indexes = [i for i, case in enumerate(cases) if not (case.comparable and case.paired)]
    if not indexes:
        return Mismatches()
    mismatches = [each for i in indexes for each in _compare_hosts_and_cases(cases[i], names)]
    groups = _group_by_configuration(cases, indexes)
    first_of_each = [cases[group[0]] for group in groups[:_MAX_CONFIGURATIONS]]
    provenance = _load_provenance(benchmark, sides, first_of_each)
    withheld: set[int] = set()
    for group in groups:
        case = cases[group[0]]
        before = _find_provenance(case.baseline, provenance[0])
        after = _find_provenance(case.contender, provenance[1])
        mismatches += _compare_provenance(case, before, after)
        if before is not None and after is not None and before.loop != after.loop:
            withheld.update(group)
    return Mismatches(all=tuple(dict.fromkeys(mismatches)), withheld=frozenset(withheld))


def hide_host_settings(mismatches: Mismatches) -> Mismatches:
    """Return the mismatches as visitors see them."""
    shown = (
        replace(each, baseline=_HIDDEN, contender=_HIDDEN) if each.aspect in _OF_HOSTS else each
        for each in mismatches.all
    )
    return replace(mismatches, all=tuple(dict.fromkeys(shown)))


def _group_by_configuration(cases: Sequence[PairedCase], indexes: Sequence[int]) -> list[list[int]]:
    """Cases whose sides have the same hosts and configurations are in one group."""
    groups: dict[object, list[int]] = {}
    for i in indexes:
        before, after = cases[i].baseline[0], cases[i].contender[0]
        key: tuple[object, ...] = (_get_configuration(before), _get_configuration(after))
        if before.place.case != after.place.case:
            key = (*key, before.place.case, after.place.case)
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _get_configuration(group: PointGroup) -> tuple[str, int]:
    return group.place.host, group.comparability.configuration


def _load_provenance(
    benchmark: Benchmark, sides: tuple[Side, Side], cases: Sequence[PairedCase]
) -> tuple[ProvenanceIndex, ProvenanceIndex]:
    before = {group.place.case for case in cases for group in case.baseline}
    after = {group.place.case for case in cases for group in case.contender}
    return (
        load_provenance(benchmark, sides[0].commit, cases=before),
        load_provenance(benchmark, sides[1].commit, cases=after),
    )


def _find_provenance(side: Sequence[PointGroup], index: ProvenanceIndex) -> Provenance | None:
    return index.get((side[0].place, side[0].comparability.configuration)) if side else None


def _compare_hosts_and_cases(case: PairedCase, names: Names) -> Iterator[Mismatch]:
    before, after = ([names.hosts[group.place.host] for group in side]
                     for side in (case.baseline, case.contender))  # fmt: skip
    if {host.pk for host in before} != {host.pk for host in after}:
        yield from _compare_hosts(before, after)
    elif len(before) == 1:
        epochs = case.baseline[0].comparability.epoch, case.contender[0].comparability.epoch
        if epochs[0] != epochs[1]:
            yield _build_epoch_mismatch(before[0], *epochs)
    yield from _compare_cases(case, names)


def _compare_hosts(before: Sequence[HostName], after: Sequence[HostName]) -> Iterator[Mismatch]:
    yield Mismatch(
        aspect="host",
        baseline=_join_names(host.name for host in before),
        contender=_join_names(host.name for host in after),
        reason="different machines: the change includes the difference between them",
    )
    profiles = [_join_names(host.profile for host in side) for side in (before, after)]
    if profiles[0] != profiles[1]:
        yield Mismatch(
            aspect="profile",
            baseline=profiles[0],
            contender=profiles[1],
            reason="different hardware profiles",
        )


def _build_epoch_mismatch(host: HostName, before: int, after: int) -> Mismatch:
    first, last = sorted((before, after))
    changes = HostChange.objects.filter(host=host.pk).order_by("at")[first:last]
    facts = list(dict.fromkeys(fact for change in changes for fact in change.changed))
    changed = f" ({', '.join(facts)})" if facts else ""
    return Mismatch(
        aspect="epoch",
        baseline=f"{host.name}, epoch {before}",
        contender=f"{host.name}, epoch {after}",
        reason=f"the host changed in between{changed}: it is a different machine now",
    )


def _compare_cases(case: PairedCase, names: Names) -> Iterator[Mismatch]:
    before, after = (names.cases[side[0].place.case] for side in (case.baseline, case.contender))
    if before.pk == after.pk:
        return
    axes = dict.fromkeys((*before.parameters, *after.parameters))
    differ = [axis for axis in axes if before.parameters.get(axis) != after.parameters.get(axis)]
    yield Mismatch(
        aspect="case",
        baseline=before.label,
        contender=after.label,
        reason=f"different work was measured: {', '.join(differ) or 'the case'} differs",
    )


def _compare_provenance(
    case: PairedCase, before: Provenance | None, after: Provenance | None
) -> Iterator[Mismatch]:
    configurations = (
        case.baseline[0].comparability.configuration,
        case.contender[0].comparability.configuration,
    )
    same = configurations[0] == configurations[1]
    if before is None or after is None:
        if not same:
            yield Mismatch(
                aspect="definition",
                baseline=_format_version(before),
                contender=_format_version(after),
                reason="the configurations differ; the difference was not recorded",
            )
        return
    if not same and before.definition.pk != after.definition.pk:
        yield _build_definition_mismatch(before, after)
    for attribute, reason in _REASONS.items():
        first, second = getattr(before, attribute), getattr(after, attribute)
        if first == second or (attribute == "tool_version" and before.tool != after.tool):
            continue
        yield Mismatch(
            aspect=attribute.replace("_", " ").replace("cpu", "CPU"),
            baseline=first or _NO_VALUE.get(attribute, "unknown"),
            contender=second or _NO_VALUE.get(attribute, "unknown"),
            reason=reason,
        )


def _build_definition_mismatch(before: Provenance, after: Provenance) -> Mismatch:
    old, new = before.definition, after.definition
    return Mismatch(
        aspect="definition",
        baseline=f"version {old.version}",
        contender=f"version {new.version}",
        reason="the two versions do not measure this the same way",
        diff=tuple(compute_diff(old.source, new.source)),
    )


def _format_version(provenance: Provenance | None) -> str:
    return "unknown" if provenance is None else f"version {provenance.definition.version}"


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(dict.fromkeys(names)))
