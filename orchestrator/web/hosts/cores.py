"""The cores of a host, and which of them the processes of a trial use, for its page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.hostagent.platform.placement import Placement, Share
from agents.hostagent.platform.topology import Core, Topology, format_cpus
from orchestrator.dispatch.cpus import SERVER, TOOL, predict_placement, read_topology

#: Use → its words, in the order of the legend.
_USES = {
    "server": "Server",
    "tool": "Load tool",
    "system": "System and agent",
    "idle": "Idle siblings",
    "free": "Not used",
    "others": "Reserved for others",
    "offline": "Offline",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """`use`: a key of the legend."""

    number: int
    use: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreGroup:
    """The cores of one type in one NUMA node: the CPUs of each core."""

    title: str
    cores: tuple[tuple[Cpu, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend:
    use: str
    title: str
    cpus: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreMap:
    """`legend` says in words what the drawing shows. `remarks`: complete sentences."""

    summary: str
    groups: tuple[CoreGroup, ...]
    legend: tuple[Legend, ...]
    remarks: tuple[str, ...]


def build_core_map(facts: Mapping[str, Any], tuning: Mapping[str, str]) -> CoreMap | None:
    """Return the cores, with the CPUs of a trial whose server and load tool both run on this host.

    None without a topology.
    """
    if facts.get("topology") is None:
        return None
    topology = read_topology(facts, tuning)
    placement = predict_placement(facts, tuning, [Share(SERVER), Share(TOOL)])
    uses = _map_uses(topology, placement)
    numbers = {use: [cpu for cpu, own in uses.items() if own == use] for use in _USES}
    return CoreMap(
        summary=_summarize(topology),
        groups=tuple(_build_groups(topology, uses)),
        legend=tuple(
            Legend(use=use, title=title, cpus=format_cpus(numbers[use]))
            for use, title in _USES.items()
            if numbers[use]
        ),
        remarks=tuple(_list_remarks(topology, placement, tuning)),
    )


def _map_uses(topology: Topology, placement: Placement) -> dict[int, str]:
    """Return the use of each CPU; later entries replace earlier ones."""
    return {
        **dict.fromkeys(topology.offline, "offline"),
        **{cpu: "others" for core in topology.cores for cpu in core.others},
        **dict.fromkeys(topology.cpus, "free"),
        **dict.fromkeys(placement.siblings, "idle"),
        **dict.fromkeys(placement.system, "system"),
        **{cpu: name for name, cpus in placement.cpus.items() for cpu in cpus or ()},
    }


def _summarize(topology: Topology) -> str:
    cpus = sum(len(core.all_cpus) for core in topology.cores)
    return f"{_count(len(topology.cores), 'core')}, {_count(cpus, 'CPU')}"


def _build_groups(topology: Topology, uses: Mapping[int, str]) -> Iterable[CoreGroup]:
    groups: dict[tuple[int, int, str], list[Core]] = {}
    for core in topology.cores:
        groups.setdefault((core.package, core.node, core.kind), []).append(core)
    packages, nodes = ({key[place] for key in groups} for place in (0, 1))
    for (package, node, kind), cores in groups.items():
        words = [
            f"socket {package}" if len(packages) > 1 else "",
            f"NUMA node {node}" if len(nodes) > 1 else "",
            f"{kind} cores" if kind else "cores",
        ]
        yield CoreGroup(
            title=", ".join(filter(None, words)),
            cores=tuple(
                tuple(_build_cpu(cpu, uses, core) for cpu in core.all_cpus) for core in cores
            ),
        )
    if topology.offline:
        offline = (_build_cpu(cpu, uses, None) for cpu in topology.offline)
        yield CoreGroup(title="offline CPUs", cores=tuple((cpu,) for cpu in offline))


def _build_cpu(cpu: int, uses: Mapping[int, str], core: Core | None) -> Cpu:
    clock = "" if core is None or core.clock is None else f", clock shared with CPU {core.clock}"
    shown = clock if core is not None and core.clock not in core.all_cpus else ""
    return Cpu(number=cpu, use=uses[cpu], title=f"CPU {cpu}: {_USES[uses[cpu]].lower()}{shown}")


def _list_remarks(
    topology: Topology, placement: Placement, tuning: Mapping[str, str]
) -> Iterable[str]:
    if placement.problem:
        yield f"Cores are not separate: {placement.problem}."
    if topology.isolated:
        yield (
            f"CPUs {format_cpus(topology.isolated)} are isolated (isolcpus). The kernel does not "
            "move threads between them, so trials do not use them."
        )
    if tuning.get("smt") == "off":
        yield "SMT is off during a round, so only the first CPU of each core is shown."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
