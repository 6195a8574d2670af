"""The common data of a job's trials: its definition by case, its hosts, and their facts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.benchmarks.matrix import build_resolver, find_unsupported_reason
from orchestrator.benchmarks.models import BuildSource, Case, Commit
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.benchmarks.spec import Spec
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.fleet.models import Host
from orchestrator.fleet.selectors import find_latest_snapshot
from orchestrator.runs.models import HostRole, Job, Run
from orchestrator.runs.pinned_repositories import PinnedCommit
from orchestrator.runs.states import TrialState

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """`specs`: the definition of each case, by its key in the database; `facts`: by host label.

    `tools`: the path of each load tool on the load's host. `warmups`: the factors that make the
    cases' warm-ups longer than in the definition. `capacities`: those of the baseline, by case, at
    shares of which a search is replaced in `specs`. `sources`: of commits, by their key. `pinned`:
    the commits of other repositories, with their projects.
    """

    run: Run
    spec: Spec
    specs: Mapping[int, Spec]
    job_hosts: JobHosts
    facts: Mapping[str, Facts]
    tools: Mapping[str, str]
    warmups: Mapping[int, int]
    capacities: Mapping[int, float] = field(default_factory=dict)
    sources: Mapping[int, BuildSource] = field(default_factory=dict)
    pinned: Mapping[PinnedCommit, Commit] = field(default_factory=dict)

    @property
    def pins(self) -> tuple[PinnedCommit, ...]:
        return tuple(self.pinned)

    def get_facts(self, role: str) -> Facts:
        return self.facts[self.job_hosts.get_role_label(role)]


def load_allowed_cases(job: Job) -> list[Case]:
    """Return the cases that the definition does not mark as unsupported."""
    spec = read_spec(job.run.definition)
    cases = Case.objects.filter(pk__in=job.trials.values("case"))
    return [each for each in cases if not find_unsupported_reason(spec, each.parameters)]


def load_supported_cases(job: Job) -> list[Case]:
    """Return the cases that the job's hosts can measure, as far as known."""
    cases = Case.objects.filter(pk__in=job.trials.values("case"))
    lost = job.trials.filter(state=TrialState.UNSUPPORTED)
    return list(cases.exclude(pk__in=lost.values("case")))


def resolve_cases(spec: Spec, cases: Iterable[Case]) -> dict[int, Spec]:
    """Return the definition of each case by its key; cases with equal options share one."""
    shape = build_resolver(spec)
    return {case.pk: shape(case.parameters) for case in cases}


def load_facts(job: Job, job_hosts: JobHosts) -> dict[str, Facts]:
    """Return the facts of each host of a job by its label."""
    return {job_hosts.label(host): _load_host_facts(job, host) for host in job_hosts.hosts}


def select_serving_hosts(specs: Iterable[Spec], job_hosts: JobHosts) -> list[Host]:
    """Return the hosts that run a server or a service of one of these definitions."""
    roles = {HostRole.TARGET.value}
    for spec in specs:
        roles |= {service.role for service in spec.services.values()}
    return [
        host for host in job_hosts.hosts if any(job_hosts.roles[role] == host for role in roles)
    ]


def select_building_hosts(specs: Iterable[Spec], job_hosts: JobHosts) -> list[Host]:
    """Return the hosts that need a commit: those with servers, or with files for the load."""
    every = list(specs)
    using = select_serving_hosts(every, job_hosts)
    if any(_is_load_from_commit(spec) for spec in every):
        using = [*using, job_hosts.lead]
    return [host for host in job_hosts.hosts if host in using]


def _is_load_from_commit(spec: Spec) -> bool:
    load = spec.load
    return load.command is not None or (load.grpc is not None and load.grpc.proto is not None)


def _load_host_facts(job: Job, host: Host) -> Facts:
    snapshot = job.snapshot if host == job.host else find_latest_snapshot(host)
    return snapshot.facts if snapshot else {}
