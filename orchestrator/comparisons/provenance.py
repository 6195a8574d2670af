"""How a point came about, for telling why two of them are not like for like.

A point knows only a number, its configuration. What is behind it is read from the trials of its
commit: the definition that they followed, the tool that made their load, and the hosts that took
part.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from orchestrator.benchmarks.matrix import load_of
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.resolved import measured_by
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.benchmarks.spec import Spec
from orchestrator.comparisons.points import Place
from orchestrator.measurements.comparability import hash_measured_configuration
from orchestrator.runs.models import HostRole, Placement, Trial
from orchestrator.runs.states import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """Where nobody knows any more, a text is empty."""

    definition: Definition
    tool: str
    tool_version: str
    loop: str
    protocol: str
    network: str


#: (place, configuration) → how
Hows = Mapping[tuple[Place, int], How]


_KEPT = (
    "host_id", "case_id", "job_id", "job__run__definition_id", "provenance__tool__name",
    "provenance__tool__version", "job__created_at",
)  # fmt: skip


def hows_of(
    benchmark: Benchmark,
    commit: Commit,
    *,
    cases: Collection[int] | None = None,
    version: Definition | None = None,
) -> Hows:
    """How the trials of a commit were measured; of some cases, of one version of the definition."""
    trials = Trial.objects.filter(
        variant__commit=commit,
        state=TrialState.MEASURED,
        job__run__definition__benchmark=benchmark,
        **{} if cases is None else {"case__in": list(cases)},
        **{} if version is None else {"job__run__definition": version},
    )
    rows = list(trials.order_by("job__created_at").values_list(*_KEPT).distinct())
    parameters = dict(
        Case.objects.filter(pk__in={row[1] for row in rows}).values_list("pk", "parameters")
    )
    definitions = Definition.objects.in_bulk({row[3] for row in rows})
    networks = _networks({row[2] for row in rows})
    found = {}
    for host, case, job, definition, tool, tool_version, _ in rows:
        values = _hashable(parameters[case])
        configuration = hash_measured_configuration(
            _measured(definition, values), [tool, tool_version]
        )
        loop, protocol, planned = _load(definition, values)
        found[Place(str(host), case), configuration] = How(
            definition=definitions[definition],
            tool=tool or planned,
            tool_version=tool_version or "",
            loop=loop,
            protocol=protocol,
            network=networks[job],
        )
    return found


def _networks(jobs: Collection[UUID]) -> Mapping[UUID, str]:
    """Whether target and generator of each job are one machine; a job without roles is on one."""
    hosts: dict[UUID, dict[str, Any]] = defaultdict(dict)
    rows = Placement.objects.filter(job__in=jobs).values_list("job_id", "role", "host_id")
    for job, role, host in rows:
        hosts[job][role] = host
    return {job: _network(hosts.get(job, {})) for job in jobs}


def _network(roles: Mapping[str, Any]) -> str:
    target = roles.get(HostRole.TARGET)
    return "loopback" if roles.get(HostRole.GENERATOR, target) == target else "network"


def _hashable(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(parameters.items()))


@lru_cache(maxsize=64)
def _spec(definition: UUID) -> Spec:
    """A definition never changes."""
    return spec_of(Definition.objects.get(pk=definition))


@lru_cache(maxsize=4096)
def _measured(definition: UUID, parameters: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return measured_by(_spec(definition), dict(parameters))


@lru_cache(maxsize=4096)
def _load(definition: UUID, parameters: tuple[tuple[str, Any], ...]) -> tuple[str, str, str]:
    """Closed or open, the protocol, and the tool of a case's load."""
    load = load_of(_spec(definition), dict(parameters))
    steps = [step.rate for step in load.steps or ()]
    rated = load.search is not None or any(rate is not None for rate in (load.rate, *steps))
    return ("open" if rated else "closed"), load.protocol, load.tool
