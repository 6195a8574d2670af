"""Cases of a job that its hosts cannot measure, and why."""

from collections.abc import Mapping

from orchestrator.benchmarks.matrix import find_unsupported_reason, resolve_network
from orchestrator.benchmarks.models import Case
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import HostSetupError
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.processes import list_limits_on, predict_placements
from orchestrator.dispatch.requirements import explain_missing_programs
from orchestrator.dispatch.stage import Facts, load_facts, resolve_cases, select_building_hosts
from orchestrator.dispatch.tools import collect_tool_needs, locate_tool
from orchestrator.runs import claims
from orchestrator.runs.models import Job
from orchestrator.runs.states import TrialState

#: The agent's name of a limit that only control groups enforce → its name in a definition.
ENFORCED_LIMITS = {"cpu_quota": "cpu_quota", "memory_bytes": "memory"}


def decide(job: Job, job_hosts: JobHosts) -> bool:
    """Mark the trials that cannot be measured, by the facts of the hosts.

    Return False if nothing is left to measure on these hosts, but other hosts might be able to.
    """
    spec = read_spec(job.run.definition)
    open_ = job.trials.filter(state__in=[TrialState.PLANNED, TrialState.UNSUPPORTED])
    cases = list(Case.objects.filter(pk__in=open_.values("case")))
    own = {case.pk: find_unsupported_reason(spec, case.parameters) for case in cases}
    candidates = [case for case in cases if not own[case.pk]]
    lacking = find_unsupported(spec, candidates, load_facts(job, job_hosts), job_hosts)
    claims.mark_unsupported(job, {pk: why for pk, why in {**own, **lacking}.items() if why})
    return not candidates or not all(lacking[case.pk] for case in candidates)


def find_unsupported(
    spec: Spec, cases: list[Case], facts: Mapping[str, Facts], job_hosts: JobHosts
) -> dict[int, str]:
    """Return what the hosts lack for each case; empty if nothing."""
    specs = resolve_cases(spec, cases)
    return {
        case.pk: _check_programs(specs[case.pk], facts, job_hosts)
        or _check_tool(specs[case.pk], case, facts[job_hosts.label(job_hosts.lead)])
        or _check_cpus(specs[case.pk], facts, job_hosts)
        or _check_limits(specs[case.pk], facts, job_hosts)
        or _check_network(specs[case.pk], case, facts, job_hosts)
        for case in cases
    }


def _check_programs(spec: Spec, facts: Mapping[str, Facts], job_hosts: JobHosts) -> str:
    """Return the first host that builds and lacks a requirement of the case."""
    for host in select_building_hosts([spec], job_hosts) if spec.requires else ():
        why = explain_missing_programs(facts[job_hosts.label(host)], spec.requires)
        if why:
            return f"{host.name}: {why}"
    return ""


def _check_cpus(spec: Spec, facts: Mapping[str, Facts], job_hosts: JobHosts) -> str:
    try:
        predict_placements(spec, job_hosts, facts)
    except HostSetupError as error:
        return str(error)
    return ""


def _check_limits(spec: Spec, facts: Mapping[str, Facts], job_hosts: JobHosts) -> str:
    """Return the first host that cannot enforce a limit of a process there.

    A host that reports nothing about its limits, such as one with an old agent, is tried.
    """
    for host in job_hosts.hosts:
        known = facts[job_hosts.label(host)]
        available = known.get("limits_available")
        limits = list_limits_on(spec, job_hosts, host)
        wanted = {name for each in limits for name in ENFORCED_LIMITS if each[name] is not None}
        missing = wanted - set(wanted if available is None else available)
        if missing:
            names = " and ".join(ENFORCED_LIMITS[name] for name in sorted(missing))
            why = known.get("limits_problem") or "its system offers none"
            return f"{host.name}: it cannot enforce {names}: {why}"
    return ""


def _check_network(spec: Spec, case: Case, facts: Mapping[str, Facts], job_hosts: JobHosts) -> str:
    """Return why the hosts cannot emulate the network of the case."""
    network = resolve_network(spec, case.parameters)
    if network is None:
        return ""
    if len(job_hosts.hosts) > 1:
        names = ", ".join(host.name for host in job_hosts.hosts)
        return (
            f"a network is emulated on one host only, and the job has {names}: choose one host "
            "for all roles, or leave network out of the definition"
        )
    known = facts[job_hosts.label(job_hosts.lead)]
    missing = network.properties - set(known.get("network_available") or ())
    if not missing and (network.properties or known.get("network_available")):
        return ""
    why = known.get("network_problem") or "check the host again"
    names = " and ".join(sorted(missing)) or "a network"
    return f"{job_hosts.lead.name}: it cannot emulate {names}: {why}"


def _check_tool(spec: Spec, case: Case, facts: Facts) -> str:
    for name, features in collect_tool_needs(spec, [case.parameters]).items():
        try:
            locate_tool(name, facts, features)
        except HostSetupError as error:
            return str(error)
    return ""
