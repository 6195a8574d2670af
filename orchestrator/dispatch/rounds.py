"""The plan of one round, as the agents get it (`plan.json`; see agents/hostagent/protocol.py)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.hostagent.protocol import SCHEMA
from orchestrator.benchmarks.limits import Limits
from orchestrator.benchmarks.load import Search
from orchestrator.benchmarks.loads import TRIAL_OVERHEAD_S, load_specs_of, tool_of
from orchestrator.benchmarks.matrix import fill
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.objective import parse as parse_objective
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.benchmarks.spec import Scalar, Spec
from orchestrator.core.ids import digest_of
from orchestrator.dispatch.certificates import certificates_of, plan_entry
from orchestrator.dispatch.cpus import Share, allot
from orchestrator.dispatch.crew import Crew
from orchestrator.dispatch.questions import checks_of, ready_of
from orchestrator.dispatch.tools import needs_of_job, tool_path
from orchestrator.dispatch.warmups import lengthened, warmup_factors
from orchestrator.fleet.models import Host
from orchestrator.fleet.selectors import latest_snapshot
from orchestrator.loadtools.model import Invocation, LoadSpec
from orchestrator.runs.models import HostRole, Job, Trial
from orchestrator.runs.states import TrialState

SILENCE_S = 600.0
SERVER, TOOL = "server", "tool"
Facts = Mapping[str, Any]
Cpus = Mapping[str, list[int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What all trials of a job share: the definition, the hosts, what these said of themselves.

    `tools`: where the load's host has each load tool. `warmups`: by how much the cases' warm-ups
    are longer than the definition says.
    """

    spec: Spec
    crew: Crew
    facts: Mapping[str, Facts]
    tools: Mapping[str, str]
    warmups: Mapping[int, int]

    def facts_of(self, role: str) -> Facts:
        return self.facts[self.crew.label_of(role)]


def step_id(job: Job, *, back: int = 0) -> str:
    """The name of the current round on hosts, or of the round that an earlier attempt was in."""
    return f"a{job.attempt - back}-r{job.round}"


def source_path(sha: str) -> str:
    return f"sources/{sha}.tar.gz"


def repository_id(project: Project) -> str:
    """The name of a project's repository on hosts."""
    return digest_of(project.repository_url)[:16]


def hosts_that_serve(spec: Spec, crew: Crew) -> list[Host]:
    """The hosts that run the server or a service."""
    roles = {HostRole.TARGET.value, *(service.role for service in spec.services.values())}
    return [host for host in crew.hosts if any(crew.roles[role] == host for role in roles)]


def hosts_that_build(spec: Spec, crew: Crew) -> list[Host]:
    """The hosts that use something of a commit: those that serve, and the load's own files."""
    serving = hosts_that_serve(spec, crew)
    load = spec.load
    if load.command is None and (load.grpc is None or load.grpc.proto is None):
        return serving
    return [host for host in crew.hosts if host in serving or host == crew.lead]


def plans_of_round(job: Job, crew: Crew, ports: Mapping[str, int]) -> dict[str, bytes]:
    """For each host's label the plan of the job's current round: its trials still to be measured.

    `ports`: where the followers that are named listen for their lead.
    """
    spec = spec_of(job.run.definition)
    facts = {crew.label(host): _facts(job, host) for host in crew.hosts}
    tools = {
        name: tool_path(name, facts[crew.label(crew.lead)], features)[0]
        for name, features in needs_of_job(job, spec).items()
    }
    stage = Stage(spec=spec, crew=crew, facts=facts, tools=tools, warmups=warmup_factors(job))
    trials = list(
        job.trials.filter(round=job.round, state=TrialState.PLANNED)
        .select_related("case", "variant__commit")
        .order_by("position")
    )
    plan = _shared(job, stage, trials, ports)
    certificates = certificates_of(job, spec, crew)
    serving = hosts_that_serve(spec, crew)
    own = {
        crew.label(host): {
            "self": crew.label(host),
            "tuning": host.tuning,
            "tls": plan_entry(certificates, serves=host in serving),
        }
        for host in crew.hosts
    }
    return {label: json.dumps({**plan, **each}, indent=1).encode() for label, each in own.items()}


def _facts(job: Job, host: Host) -> Facts:
    snapshot = job.snapshot if host == job.host else latest_snapshot(host)
    return snapshot.facts if snapshot else {}


def _shared(
    job: Job, stage: Stage, trials: list[Trial], ports: Mapping[str, int]
) -> dict[str, Any]:
    crew = stage.crew
    longest = max((trial.expected_s for trial in trials), default=0.0)
    cpus = _cpus(stage)
    return {
        "schema": SCHEMA,
        "job": str(job.pk),
        "step": step_id(job),
        "silence_s": max(SILENCE_S, 3 * longest),
        "lead": crew.label(crew.lead),
        "secret": job.secret if len(crew.hosts) > 1 else None,
        "hosts": {
            crew.label(host): {"address": crew.address(host), "port": ports.get(crew.label(host))}
            for host in crew.hosts
        },
        "builds": _builds(job, stage, trials),
        "trials": [_trial(stage, cpus, trial) for trial in trials],
    }


def _builds(job: Job, stage: Stage, trials: list[Trial]) -> list[dict[str, Any]]:
    """One entry a commit and way of getting it: by git, or from an archive where there is none."""
    spec, crew = stage.spec, stage.crew
    labels = [crew.label(host) for host in hosts_that_build(spec, crew)]
    with_git = [label for label in labels if has_git(stage.facts[label])]
    without = [label for label in labels if label not in with_git]
    repository = repository_id(job.run.definition.benchmark.project)
    return [
        {
            "commit": sha,
            "source": source,
            "tree": _tree(stage, sha),
            "on": on,
            "steps": spec.subject.build,
            "env": spec.subject.env,
            "timeout_s": spec.subject.build_timeout_s,
        }
        for sha in dict.fromkeys(trial.variant.commit.sha for trial in trials)
        for on, source in (
            (with_git, {"repository": repository}),
            (without, {"archive": source_path(sha)}),
        )
        if on
    ]


def has_git(facts: Facts) -> bool:
    return bool((facts.get("tools") or {}).get("git"))


def _tree(stage: Stage, sha: str) -> str:
    """A build is shared by all that build the commit by the same recipe with the same tools."""
    facts = stage.facts_of(HostRole.TARGET)
    machine = [facts.get(name) for name in ("system", "machine", "python", "languages")]
    inputs = digest_of([stage.spec.subject.build, stage.spec.subject.env, machine])
    return f"builds/{sha}-{inputs[:16]}"


def _cpus(stage: Stage) -> Cpus:
    """The CPUs of every process, by its name; names of services do not clash with ours."""
    spec, crew = stage.spec, stage.crew
    places = [
        (HostRole.TARGET.value, Share(name=SERVER, cpus=spec.limits.target.cpus)),
        (HostRole.GENERATOR.value, Share(name=TOOL, cpus=spec.limits.generator.cpus)),
        *(
            (service.role, Share(name=f"service:{name}", cpus=service.limits.cpus))
            for name, service in spec.services.items()
            if service.limits.cpus is not None
        ),
    ]
    found: dict[str, list[int] | None] = {}
    for host in crew.hosts:
        shares = [share for role, share in places if crew.roles[role] == host]
        logical = stage.facts[crew.label(host)].get("threads")
        found.update(allot(logical, shares, pin=spec.pin_cpus))
    return found


def _trial(stage: Stage, cpus: Cpus, trial: Trial) -> dict[str, Any]:
    spec, parameters = stage.spec, trial.case.parameters
    loads = _warmed_up(load_specs_of(spec, parameters), trial, stage.warmups)
    tool = tool_of(spec, parameters)
    sha = trial.variant.commit.sha
    facts = stage.facts_of(HostRole.GENERATOR)
    threads = len(cpus.get(TOOL) or []) or facts.get("threads") or 1
    started = [each for load in loads for each in tool.invocations(load, threads)]
    search = spec.load.search
    return {
        "id": str(trial.pk),
        "tree": _tree(stage, sha),
        "commit": sha,
        "server": _server(stage, cpus, parameters),
        "ready": ready_of(spec, loads[0]),
        "checks": checks_of(spec, parameters, tool, loads[0]),
        "services": _services(stage, cpus, parameters),
        "loads": [_load(each) for each in started],
        "search": None if search is None else _search(search),
        "files": dict(tool.files(loads[0])),
        "tool": {
            "name": tool.name,
            "path": stage.tools[tool.name],
            "limits": _limits(spec.limits.generator, cpus.get(TOOL)),
            "reader": tool.reader,
            "cpus": threads,
        },
        "cooldown_s": spec.cooldown_s,
        "expected_s": max(0.0, trial.expected_s - spec.cooldown_s - TRIAL_OVERHEAD_S),
    }


def _warmed_up(
    loads: Sequence[LoadSpec], trial: Trial, factors: Mapping[int, int]
) -> list[LoadSpec]:
    """Only the warm-up that the whole trial begins with is lengthened."""
    first = replace(loads[0], warmup_s=lengthened(loads[0].warmup_s, trial.case_id, factors))
    return [first, *loads[1:]]


def _load(started: Invocation) -> dict[str, Any]:
    return {
        "argv": list(started.argv),
        "env": dict(started.env),
        "kind": started.kind,
        "wall_limit_s": started.wall_limit_s,
        "warmup_s": started.warmup_s,
    }


def _search(search: Search) -> dict[str, Any]:
    return {
        "objective": [term.as_dict() for term in parse_objective(search.objective)],
        "low": search.low,
        "high": search.high,
        "duration_s": search.probe_s,
        "max_probes": search.max_probes,
        "confirmations": search.confirmations,
    }


def _server(stage: Stage, cpus: Cpus, parameters: Mapping[str, Scalar]) -> dict[str, Any]:
    subject = stage.spec.subject
    return {
        "on": stage.crew.label_of(HostRole.TARGET),
        "argv": [fill(word, parameters) for word in subject.start or ()],
        "env": {key: fill(word, parameters) for key, word in subject.env.items()},
        "limits": _limits(stage.spec.limits.target, cpus.get(SERVER)),
        "port": subject.port,
    }


def _services(stage: Stage, cpus: Cpus, parameters: Mapping[str, Scalar]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "on": stage.crew.label_of(service.role),
            "count": service.count,
            "argv": [fill(word, parameters) for word in service.start],
            "env": {key: fill(word, parameters) for key, word in service.env.items()},
            "limits": _limits(service.limits, _service_cpus(stage, cpus, name)),
            "port": service.port,
            "ready": {
                "path": service.ready.path,
                "status": service.ready.status,
                "timeout_s": service.ready.timeout_s,
            },
        }
        for name, service in stage.spec.services.items()
    ]


def _service_cpus(stage: Stage, cpus: Cpus, name: str) -> list[int] | None:
    """A service without CPUs of its own shares the server's, and never takes the load tool's."""
    own = cpus.get(f"service:{name}")
    if own is not None:
        return own
    beside = stage.crew.roles[stage.spec.services[name].role] == stage.crew.roles[HostRole.TARGET]
    return cpus.get(SERVER) if beside else None


def _limits(limits: Limits, cpus: list[int] | None) -> dict[str, Any]:
    return {
        "cpus": cpus,
        "cpu_quota": limits.cpu_quota,
        "memory_bytes": limits.memory,
        "open_files": limits.open_files,
    }
