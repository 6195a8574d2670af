"""The provenance of points: definition, load tool, kind of load and network.

A point stores only the number of its configuration. Its provenance is read from the trials of its
commit.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from orchestrator.benchmarks.load_specs import get_planned_loop
from orchestrator.benchmarks.matrix import (
    resolve_load,
    resolve_network,
    select_measured_part,
)
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.benchmarks.spec import Spec
from orchestrator.comparisons.points import CaseOnHost
from orchestrator.measurements.comparability import hash_measured_configuration, identify_tool
from orchestrator.measurements.generator_settings import describe_settings
from orchestrator.measurements.placements import describe_cpus
from orchestrator.runs.models import HostRole, Placement, Trial
from orchestrator.runs.states import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """How a point was measured; an empty text is unknown.

    `repositories`: the commits of other repositories, such as `framework 0123456789`. `network`:
    the emulated one; without one, `loopback` on one host, else `network`. `generator_settings`:
    those of another load's host. `cpu_placement` is that of the newest job.
    """

    definition: Definition
    tool: str
    tool_version: str
    loop: str
    protocol: str
    network: str
    repositories: str
    generator_settings: str
    cpu_placement: str


_Planned = tuple[dict[str, Any], str, str, str, str]
#: (case on host, configuration) → provenance
ProvenanceIndex = Mapping[tuple[CaseOnHost, int], Provenance]


_COLUMNS = (
    "host_id", "case_id", "job_id", "job__run__definition_id", "provenance__tool__name",
    "provenance__tool__version", "provenance__repositories",
    "provenance__generator_settings", "provenance__placement", "job__created_at",
)  # fmt: skip


def load_provenance(
    benchmark: Benchmark,
    commit: Commit,
    *,
    cases: Collection[int] | None = None,
    version: Definition | None = None,
) -> ProvenanceIndex:
    """The provenance of a commit's points; of these cases, of one version of the definition."""
    trials = Trial.objects.filter(
        variant__commit=commit,
        state=TrialState.MEASURED,
        job__run__definition__benchmark=benchmark,
        **{} if cases is None else {"case__in": list(cases)},
        **{} if version is None else {"job__run__definition": version},
    )
    rows = list(trials.order_by("job__created_at").values_list(*_COLUMNS).distinct())
    parameters = dict(
        Case.objects.filter(pk__in={row[1] for row in rows}).values_list("pk", "parameters")
    )
    definitions = Definition.objects.in_bulk({row[3] for row in rows})
    networks = _describe_networks({row[2] for row in rows})
    planned: dict[tuple[UUID, int], _Planned] = {}
    index = {}
    for host, case, job, definition, tool, tool_version, others, generator, cpus, _ in rows:
        if (definition, case) not in planned:
            resolved = get_stored_spec(definitions[definition]).resolve(parameters[case])
            planned[definition, case] = _describe_planned(resolved, parameters[case])
        measured, loop, protocol, planned_tool, emulated = planned[definition, case]
        hashes = {name: pin["sha"] for name, pin in (others or {}).items()}
        identified = identify_tool(tool, tool_version, generator)
        configuration = hash_measured_configuration(measured, identified, hashes)
        index[CaseOnHost(str(host), case), configuration] = Provenance(
            definition=definitions[definition],
            tool=tool or planned_tool,
            tool_version=tool_version or "",
            loop=loop,
            protocol=protocol,
            network=emulated or networks[job],
            repositories=", ".join(f"{name} {sha[:10]}" for name, sha in sorted(hashes.items())),
            generator_settings=describe_settings(generator or {}),
            cpu_placement=describe_cpus(cpus),
        )
    return index


def _describe_networks(jobs: Collection[UUID]) -> Mapping[UUID, str]:
    """`loopback` for jobs on one host or without roles, else `network`."""
    hosts: dict[UUID, dict[str, Any]] = defaultdict(dict)
    rows = Placement.objects.filter(job__in=jobs).values_list("job_id", "role", "host_id")
    for job, role, host in rows:
        hosts[job][role] = host
    return {job: _describe_network(hosts.get(job, {})) for job in jobs}


def _describe_network(roles: Mapping[str, Any]) -> str:
    target = roles.get(HostRole.TARGET)
    return "loopback" if roles.get(HostRole.GENERATOR, target) == target else "network"


def _describe_planned(resolved: Spec, parameters: Mapping[str, Any]) -> _Planned:
    """What a case is measured by, the loop (`open` or `closed`), the protocol, the tool, and the
    emulated network, if any."""
    load = resolve_load(resolved, parameters)
    measured = select_measured_part(resolved, parameters)
    network = resolve_network(resolved, parameters)
    emulated = "" if network is None else f"emulated: {network}"
    return measured, get_planned_loop(load), load.protocol, load.tool, emulated
