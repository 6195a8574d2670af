"""The processes of a trial in a plan: the server, its services, their limits and CPUs."""

from collections.abc import Mapping
from typing import Any

from agents.hostagent.platform.placement import Placement
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
from orchestrator.dispatch.cpus import (
    SERVER,
    get_service_share,
    list_shares,
    predict_placement,
)
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.recipes import fill_working_dir
from orchestrator.dispatch.stage import Facts, Stage
from orchestrator.fleet.models import Host
from orchestrator.runs.models import HostRole

Parameters = Mapping[str, Scalar]


def predict_placements(
    spec: Spec, job_hosts: JobHosts, facts: Mapping[str, Facts]
) -> dict[str, Placement]:
    """Return the CPUs of the processes of a case on each host, by its label.

    HostSetupError if a host has fewer than the definition requires, or too few cores for it.
    """
    shares, placements = list_shares(spec, job_hosts.role_labels), {}
    for host in job_hosts.hosts:
        label = job_hosts.label(host)
        try:
            placement = predict_placement(facts[label], host.tuning, shares.get(label, ()))
        except HostSetupError as error:
            raise HostSetupError(f"{host.name}: {error}") from error
        if placement.problem and spec.too_few_cores == "unsupported":
            raise HostSetupError(
                f"{host.name}: {placement.problem}; the definition wants separate cores "
                "(too_few_cores: unsupported)"
            )
        placements[label] = placement
    return placements


def build_shares(spec: Spec, job_hosts: JobHosts) -> dict[str, list[dict[str, Any]]]:
    """Return who gets separate CPUs on each host, by its label."""
    shares = list_shares(spec, job_hosts.role_labels)
    return {label: [share._asdict() for share in own] for label, own in shares.items()}


def build_server(stage: Stage, spec: Spec, parameters: Parameters) -> dict[str, Any]:
    subject = spec.subject
    return {
        "on": stage.job_hosts.get_role_label(HostRole.TARGET),
        "working_dir": fill_working_dir(spec, parameters),
        "argv": [fill(word, parameters) for word in subject.start or ()],
        "env": fill_env(subject.env, parameters),
        "limits": build_limits(spec.limits.target, SERVER if spec.pin_cpus else None),
        "port": subject.port,
    }


def build_services(stage: Stage, spec: Spec, parameters: Parameters) -> list[dict[str, Any]]:
    labels = stage.job_hosts.role_labels
    return [
        {
            "name": name,
            "on": stage.job_hosts.get_role_label(service.role),
            "count": service.count,
            "argv": [fill(word, parameters) for word in service.start],
            "env": fill_env(service.env, parameters),
            "limits": build_limits(service.limits, get_service_share(spec, labels, name)),
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


def list_limits_on(spec: Spec, job_hosts: JobHosts, host: Host) -> list[dict[str, Any]]:
    """Return the limits, without CPUs, of all processes of a case on this host."""
    limits = [
        (HostRole.TARGET.value, spec.limits.target),
        (HostRole.GENERATOR.value, spec.limits.generator),
        *((service.role, service.limits) for service in spec.services.values()),
    ]
    return [build_limits(each, None) for role, each in limits if job_hosts.roles[role] == host]


def build_limits(limits: Limits, share: str | None) -> dict[str, Any]:
    return {
        "share": share,
        "cpu_quota": limits.cpu_quota,
        "memory_bytes": limits.memory,
        "open_files": limits.open_files,
    }
