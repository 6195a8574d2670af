"""Which CPUs the processes of a trial get on one host. No I/O; the orchestrator imports it, too.

Each share gets whole physical cores. All shares get cores of one type and of one NUMA node, if one
of them has enough. The core with the lowest CPU is kept for the system and the agent, on hosts with
at least three cores. On hosts with too few cores the shares divide the CPUs, and `shared` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from .topology import Core, Topology, format_cpus

#: A host with fewer cores keeps none for the system.
FEWEST_CORES = 3
UNKNOWN_CPUS = "the system does not report its CPUs"


class Share(NamedTuple):
    """Processes that use the same CPUs. `cpus`: the number of CPUs; None = a part of the rest."""

    name: str
    cpus: Optional[int] = None


class Placement(NamedTuple):
    """`cpus`: those of each share; None = any. `system`: those of the agent and the system.

    `siblings`: CPUs that share a core with a share, and that no share uses. `shared`: the names of
    shares with a common core, one tuple for each combination. `problem`: why not each share and the
    system have their own cores, or "". `note`: another remark, or "".
    """

    cpus: Mapping[str, Optional[tuple[int, ...]]]
    system: tuple[int, ...] = ()
    siblings: tuple[int, ...] = ()
    shared: tuple[tuple[str, ...], ...] = ()
    problem: str = ""
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "cpus": {
                name: None if cpus is None else list(cpus) for name, cpus in self.cpus.items()
            },
            "system": list(self.system),
            "siblings": list(self.siblings),
            "shared": [list(names) for names in self.shared],
        }


class TooFewCpus(Exception):
    """The shares want more CPUs than the host has."""


#: Share → its cores in order, and how many of their CPUs it uses (None = all).
_Taken = Mapping[str, tuple[Sequence[Core], Optional[int]]]


def place(topology: Topology, shares: Sequence[Share]) -> Placement:
    """Return the placement of the shares; TooFewCpus if they want more CPUs than there are."""
    wanted, usable = sum(share.cpus or 0 for share in shares), topology.cpus
    if wanted > len(usable):
        raise TooFewCpus(
            f"the definition's limits want {wanted} CPUs of one host, and it has "
            f"{len(usable) or 'unknown'}; take a larger host, another placement, or fewer CPUs"
        )
    if not shares:
        return Placement({})
    if topology.no_pinning or not usable:
        return _place_nowhere(topology, shares)
    cores = topology.usable
    kept = cores[:1] if len(cores) >= FEWEST_CORES else ()
    for system in dict.fromkeys((kept, ())):
        free = [core for core in cores if core not in system]
        for pool in _list_pools(topology, free):
            taken = _take_cores(pool, shares)
            if taken is not None:
                return _build_placement(topology, shares, _resolve_cpus(taken), system)
    return _build_placement(topology, shares, _divide_cpus(cores, shares), ())


def _place_nowhere(topology: Topology, shares: Sequence[Share]) -> Placement:
    """Return any CPU for each share. A wanted number stays, so that the system refuses it."""
    cpus = {share.name: topology.cpus[: share.cpus] if share.cpus else None for share in shares}
    return Placement(cpus, problem=topology.no_pinning or UNKNOWN_CPUS)


def _list_pools(topology: Topology, cores: Sequence[Core]) -> Iterator[Sequence[Core]]:
    """Yield the cores of each type and node, the fastest and largest first; then all cores."""
    ranks = {kind: rank for rank, kind in enumerate(topology.kinds)}
    groups: dict[tuple[str, int], list[Core]] = {}
    for core in cores:
        groups.setdefault((core.kind, core.node), []).append(core)
    order = sorted(
        groups, key=lambda key: (ranks.get(key[0], len(ranks)), -len(groups[key]), key[1])
    )
    # Complete cores come first: others may work on the rest of an incomplete one.
    ordered = [sorted(groups[key], key=lambda core: bool(core.others)) for key in order]
    yield from ordered
    if len(ordered) > 1:
        yield [core for group in ordered for core in group]


def _take_cores(pool: Sequence[Core], shares: Sequence[Share]) -> Optional[_Taken]:
    """Return separate cores for each share, in its order; None if there are too few."""
    taken: dict[str, tuple[Sequence[Core], Optional[int]]] = {}
    left = list(pool)
    for share in shares:
        if share.cpus is not None:
            number = _count_cores(left, share.cpus)
            if number is None:
                return None
            taken[share.name], left = (left[:number], share.cpus), left[number:]
    rest = [share for share in shares if share.cpus is None]
    if len(left) < len(rest):
        return None
    taken.update({share.name: (part, None) for share, part in zip(rest, _split(left, len(rest)))})
    return taken


def _count_cores(cores: Sequence[Core], cpus: int) -> Optional[int]:
    """Return how many of the cores have this number of CPUs; None if all together have fewer."""
    number = total = 0
    while total < cpus:
        if number == len(cores):
            return None
        total += len(cores[number].cpus)
        number += 1
    return number


def _split(items: Sequence[Any], parts: int) -> list[Sequence[Any]]:
    """Return equal parts; the last one has the rest, too."""
    each = len(items) // parts if parts else 0
    ends = [(part + 1) * each for part in range(parts - 1)]
    return [items[start:end] for start, end in zip([0, *ends], [*ends, len(items)])][:parts]


def _resolve_cpus(taken: _Taken) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(cpu for core in cores for cpu in core.cpus)[:number]
        for name, (cores, number) in taken.items()
    }


def _divide_cpus(cores: Sequence[Core], shares: Sequence[Share]) -> dict[str, tuple[int, ...]]:
    """Return separate CPUs for each share; all CPUs for the last ones if too few are left."""
    left = [cpu for core in cores for cpu in core.cpus]
    every, divided = tuple(left), {}
    for share in shares:
        if share.cpus is not None:
            divided[share.name], left = tuple(left[: share.cpus]), left[share.cpus :]
    rest = [share.name for share in shares if share.cpus is None]
    if len(left) < len(rest):
        return {**divided, **dict.fromkeys(rest, tuple(left) or every)}
    return {**divided, **{name: tuple(part) for name, part in zip(rest, _split(left, len(rest)))}}


def _build_placement(
    topology: Topology,
    shares: Sequence[Share],
    cpus: Mapping[str, tuple[int, ...]],
    system: Sequence[Core],
) -> Placement:
    if len(shares) == 1 and not system and shares[0].cpus is None:
        return Placement({shares[0].name: None}, problem=_explain(topology, (), system))
    own_cpus = {name: frozenset(own) for name, own in cpus.items()}
    used = frozenset().union(*own_cpus.values())
    touched = [core for core in topology.usable if not used.isdisjoint(core.cpus)]
    users = (
        tuple(sorted(name for name, own in own_cpus.items() if not own.isdisjoint(core.cpus)))
        for core in touched
    )
    shared = tuple(dict.fromkeys(names for names in users if len(names) > 1))
    return Placement(
        cpus={share.name: tuple(sorted(cpus[share.name])) for share in shares},
        system=tuple(cpu for core in system for cpu in core.cpus),
        siblings=tuple(sorted({cpu for core in touched for cpu in core.all_cpus} - used)),
        shared=shared,
        problem=_explain(topology, shared, system),
        note=_describe_mixture(touched, own_cpus),
    )


def _explain(topology: Topology, shared: Sequence[Sequence[str]], system: Sequence[Core]) -> str:
    """Return why not each share and the system have their own cores; "" if they have."""
    number = len(topology.usable)
    has = f"the agent may use {number} physical core{'' if number == 1 else 's'}"
    if shared:
        names = ", ".join(dict.fromkeys(name for group in shared for name in group))
        return f"{has} (CPUs {format_cpus(topology.cpus)}), so these share cores: {names}"
    if not system:
        return f"{has} (CPUs {format_cpus(topology.cpus)}), so none is kept for the system"
    return topology.no_siblings


def _describe_mixture(cores: Sequence[Core], cpus: Mapping[str, frozenset[int]]) -> str:
    """Return which shares have cores of several types or nodes."""
    places = {
        name: {(core.kind, core.node) for core in cores if not own.isdisjoint(core.cpus)}
        for name, own in cpus.items()
    }
    mixed = [name for name, own in places.items() if len(own) > 1]
    return f"cores of several types or NUMA nodes: {', '.join(mixed)}" if mixed else ""
