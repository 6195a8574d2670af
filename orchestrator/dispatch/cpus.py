"""Who gets separate CPUs on the hosts of a trial; each host chooses them itself. No I/O."""

from collections.abc import Iterable, Mapping
from typing import Any

from agents.hostagent.platform.placement import Placement, Share, TooFewCpus, place
from agents.hostagent.platform.topology import Topology, build_unknown_topology, parse_topology
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import HostSetupError

SERVER, TOOL = "server", "tool"
#: The services without a number of CPUs on a host that does not run the server.
SERVICES = "services"


def list_shares(spec: Spec, labels: Mapping[str, str]) -> dict[str, list[Share]]:
    """Return the shares of each host by its label; `labels`: those of the roles."""
    shares: dict[str, list[Share]] = {}
    if not spec.pin_cpus:
        return shares
    for role, share in _iterate_shares(spec, labels):
        own = shares.setdefault(labels[role], [])
        if share not in own:
            own.append(share)
    return shares


def get_service_share(spec: Spec, labels: Mapping[str, str], name: str) -> str | None:
    """Return the share of a service: its own, or that of the server on its host."""
    service = spec.services[name]
    if not spec.pin_cpus:
        return None
    if service.limits.cpus is not None:
        return f"service:{name}"
    return SERVER if labels[service.role] == labels["target"] else SERVICES


def predict_placement(
    facts: Mapping[str, Any], tuning: Mapping[str, str], shares: Iterable[Share]
) -> Placement:
    """Return the CPUs that the shares will get, as far as the facts of a host tell.

    HostSetupError if they want more CPUs than it has.
    """
    try:
        return place(read_topology(facts, tuning), list(shares))
    except TooFewCpus as error:
        raise HostSetupError(str(error)) from error


def read_topology(facts: Mapping[str, Any], tuning: Mapping[str, str]) -> Topology:
    """Return the topology of a host during its rounds, when its tuning is applied."""
    stored = facts.get("topology")
    if stored is None:
        return build_unknown_topology(range(facts.get("threads") or 0))
    topology = parse_topology(stored)
    return topology.without_smt() if tuning.get("smt") == "off" else topology


def _iterate_shares(spec: Spec, labels: Mapping[str, str]) -> Iterable[tuple[str, Share]]:
    yield "target", Share(SERVER, spec.limits.target.cpus)
    yield "generator", Share(TOOL, spec.limits.generator.cpus)
    for name, service in spec.services.items():
        share = get_service_share(spec, labels, name)
        if share is not None and share != SERVER:
            yield service.role, Share(share, service.limits.cpus)
