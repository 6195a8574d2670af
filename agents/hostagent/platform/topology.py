"""The physical cores of a machine and their CPUs. No I/O; the orchestrator imports it, too.

linux/topology.py and experimental/macos.py read it. A *CPU* is what the kernel schedules on: with
SMT, a core has several CPUs, which are siblings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Optional

UNKNOWN_SIBLINGS = "the system does not report which CPUs share a physical core"


class Core(NamedTuple):
    """A physical core.

    `cpus`: those that are online and that the agent may use. `others`: those that are online and
    reserved for others. `kind`: its type on a machine with several types, or "". `clock`: the
    lowest CPU of those that change their clock rate together; None = unknown.
    """

    cpus: tuple[int, ...]
    others: tuple[int, ...] = ()
    package: int = 0
    node: int = 0
    kind: str = ""
    clock: Optional[int] = None

    @property
    def all_cpus(self) -> tuple[int, ...]:
        return tuple(sorted((*self.cpus, *self.others)))


class Topology(NamedTuple):
    """`cores`: by their lowest CPU. `kinds`: the types of cores, the fastest first.

    `isolated`: CPUs that the kernel keeps free of other processes (isolcpus). `no_siblings`: why it
    is unknown which CPUs are siblings, or "". `no_pinning`: why no process can be pinned, or "".
    """

    cores: tuple[Core, ...]
    kinds: tuple[str, ...] = ()
    offline: tuple[int, ...] = ()
    isolated: tuple[int, ...] = ()
    no_siblings: str = ""
    no_pinning: str = ""

    @property
    def usable(self) -> tuple[Core, ...]:
        """Return the cores with at least one CPU that the agent may use."""
        return tuple(core for core in self.cores if core.cpus)

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return all usable CPUs."""
        return tuple(sorted(cpu for core in self.cores for cpu in core.cpus))

    def as_json(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "cores": [
                {**core._asdict(), "cpus": list(core.cpus), "others": list(core.others)}
                for core in self.cores
            ],
            **{name: list(getattr(self, name)) for name in ("kinds", "offline", "isolated")},
        }

    def without_smt(self) -> Topology:
        """Return it with the first CPU of each core only, as SMT leaves it when it is off."""
        cores = tuple(
            core._replace(
                cpus=tuple(cpu for cpu in core.cpus if cpu == core.all_cpus[0]),
                others=tuple(cpu for cpu in core.others if cpu == core.all_cpus[0]),
            )
            for core in self.cores
        )
        return self._replace(cores=cores)


def parse_topology(value: Mapping[str, Any]) -> Topology:
    """Return what `as_json` wrote."""
    cores = tuple(
        Core(**{**core, "cpus": tuple(core["cpus"]), "others": tuple(core["others"])})
        for core in value["cores"]
    )
    lists = {name: tuple(value[name]) for name in ("kinds", "offline", "isolated")}
    return Topology(
        cores=cores, **lists, no_siblings=value["no_siblings"], no_pinning=value["no_pinning"]
    )


def build_unknown_topology(cpus: Iterable[int]) -> Topology:
    """Return the topology of a system that reports only its CPUs: each counts as a core."""
    return Topology(tuple(Core(cpus=(cpu,)) for cpu in sorted(cpus)), no_siblings=UNKNOWN_SIBLINGS)


def format_cpus(cpus: Collection[int]) -> str:
    """Return CPUs as the kernel lists them, such as "0-3,8"; "" without any."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
