"""The processes of a trial in a plan: the server, its services, their limits and CPUs."""

from collections.abc import Mapping
from typing import Any

from orchestrator.benchmarks.fields import select_texts
from orchestrator.benchmarks.limits import Limits
from orchestrator.benchmarks.matrix import fill, fill_env
from orchestrator.benchmarks.placeholders import (
    find_placeholders,
    list_prepare_words,
    list_repository_placeholders,
)
from orchestrator.benchmarks.prepare_steps import PrepareStep
from orchestrator.benchmarks.spec import Scalar, Spec
from orchestrator.core.errors import HostSetupError
from orchestrator.core.ids import hash_value
from orchestrator.dispatch.cpus import Share, assign_cpus
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.recipes import fill_working_dir
from orchestrator.dispatch.stage import Facts, Stage
from orchestrator.runs.models import HostRole

SERVER, TOOL = "server", "tool"
Cpus = Mapping[str, list[int] | None]
Parameters = Mapping[str, Scalar]


def assign_process_cpus(spec: Spec, job_hosts: JobHosts, facts: Mapping[str, Facts]) -> Cpus:
    """Return the CPUs of each process of a case by name; service names have a prefix.

    HostSetupError if a host has fewer than the definition requires.
    """
    places = [
        (HostRole.TARGET.value, Share(name=SERVER, cpus=spec.limits.target.cpus)),
        (HostRole.GENERATOR.value, Share(name=TOOL, cpus=spec.limits.generator.cpus)),
        *(
            (service.role, Share(name=f"service:{name}", cpus=service.limits.cpus))
            for name, service in spec.services.items()
            if service.limits.cpus is not None
        ),
    ]
    assignment: dict[str, list[int] | None] = {}
    for host in job_hosts.hosts:
        shares = [share for role, share in places if job_hosts.roles[role] == host]
        logical = facts[job_hosts.label(host)].get("threads")
        try:
            assignment.update(assign_cpus(logical, shares, pin=spec.pin_cpus))
        except HostSetupError as error:
            raise HostSetupError(f"{host.name}: {error}") from error
    return assignment


def build_server(stage: Stage, spec: Spec, cpus: Cpus, parameters: Parameters) -> dict[str, Any]:
    subject = spec.subject
    return {
        "on": stage.job_hosts.get_role_label(HostRole.TARGET),
        "working_dir": fill_working_dir(spec, parameters),
        "argv": [fill(word, parameters) for word in subject.start or ()],
        "env": fill_env(subject.env, parameters),
        "limits": build_limits(spec.limits.target, cpus.get(SERVER)),
        "port": subject.port,
    }


def build_services(
    stage: Stage, spec: Spec, cpus: Cpus, parameters: Parameters
) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "on": stage.job_hosts.get_role_label(service.role),
            "count": service.count,
            "argv": [fill(word, parameters) for word in service.start],
            "env": fill_env(service.env, parameters),
            "limits": build_limits(service.limits, _choose_service_cpus(stage, spec, cpus, name)),
            "port": service.port,
            "ready": {
                "path": service.ready.path,
                "status": service.ready.status,
                "timeout_s": service.ready.timeout_s,
            },
        }
        for name, service in spec.services.items()
    ]


def build_prepare_steps(spec: Spec, parameters: Parameters) -> list[dict[str, Any]]:
    """Return the prepare steps of a case, each with a key that names all that it depends on."""
    steps = [_build_prepare_step(spec, step, parameters) for step in spec.prepare]
    return [
        {"key": hash_value([place, step, spec.files]), **step} for place, step in enumerate(steps)
    ]


def _build_prepare_step(spec: Spec, step: PrepareStep, parameters: Parameters) -> dict[str, Any]:
    """Return a step with the environment of the server, as far as its placeholders are known.

    A variable that names an axis is for steps of a trial only, or each case would have its own data
    of the job.
    """
    axes = spec.matrix if step.each == "trial" else ()
    known = {
        *axes,
        *list_prepare_words(step.after, spec.services),
        *list_repository_placeholders(spec.repositories),
    }
    unknown = {
        key
        for key, text in select_texts(spec.subject.env).items()
        if not find_placeholders(text) <= known
    }
    inherited = {key: value for key, value in spec.subject.env.items() if key not in unknown}
    folder = step.working_dir or spec.subject.working_dir
    return {
        "each": step.each,
        "after": step.after,
        "argv": [fill(word, parameters) for word in step.run],
        "env": fill_env({**inherited, **step.env}, parameters),
        "working_dir": None if folder is None else fill(folder, parameters),
        "timeout_s": step.timeout_s,
    }


def build_limits(limits: Limits, cpus: list[int] | None) -> dict[str, Any]:
    return {
        "cpus": cpus,
        "cpu_quota": limits.cpu_quota,
        "memory_bytes": limits.memory,
        "open_files": limits.open_files,
    }


def _choose_service_cpus(stage: Stage, spec: Spec, cpus: Cpus, name: str) -> list[int] | None:
    """Return a service's CPUs: by default those of the server, never those of the load tool."""
    own = cpus.get(f"service:{name}")
    if own is not None:
        return own
    beside = (
        stage.job_hosts.roles[spec.services[name].role] == stage.job_hosts.roles[HostRole.TARGET]
    )
    return cpus.get(SERVER) if beside else None
