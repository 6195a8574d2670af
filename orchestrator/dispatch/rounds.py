"""The plan of one step, as the agents get it (`plan.json`; see agents/hostagent/protocol.py).

A step measures one round of the job, or several short ones.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents.hostagent.protocol import FILES, SCHEMA
from orchestrator.benchmarks.load import Search
from orchestrator.benchmarks.load_specs import (
    TRIAL_OVERHEAD_S,
    build_load_specs,
    estimate_trial_s,
    get_network_setup_s,
    get_tool,
    sum_step_limits,
)
from orchestrator.benchmarks.matrix import fill_env
from orchestrator.benchmarks.objective import count_needed_requests
from orchestrator.benchmarks.objective import parse as parse_objective
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.ids import sha256_hex
from orchestrator.dispatch.capacities import load_capacities, measure_at_shares
from orchestrator.dispatch.certificates import ensure_certificates, plan_entry
from orchestrator.dispatch.cpus import TOOL
from orchestrator.dispatch.http_checks import build_checks, build_ready_check
from orchestrator.dispatch.job_hosts import HostSession, JobHosts
from orchestrator.dispatch.processes import (
    build_limits,
    build_prepare_steps,
    build_server,
    build_services,
    build_shares,
    predict_placements,
)
from orchestrator.dispatch.recipes import build_builds, resolve_trial_recipe
from orchestrator.dispatch.requirements import build_path
from orchestrator.dispatch.shared_secret import load_secret
from orchestrator.dispatch.sources import load_sources
from orchestrator.dispatch.stage import (
    Stage,
    load_facts,
    load_supported_cases,
    resolve_cases,
    select_serving_hosts,
)
from orchestrator.dispatch.tools import collect_tool_needs, locate_tool
from orchestrator.dispatch.warmups import lengthen_warmup, load_warmup_factors
from orchestrator.fleet.host_variables import select_plain_variables
from orchestrator.loadtools.model import Invocation, LoadSpec
from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.runs.cancelling import load_cancelled_trial_ids
from orchestrator.runs.models import HostRole, Job, Trial
from orchestrator.runs.pinned_repositories import load_pinned_commits
from orchestrator.runs.quiet_wait import get_limit_s
from orchestrator.runs.states import TrialState
from orchestrator.runs.step_rounds import filter_step_trials

#: The least time for which the agents of a round continue without a poll. For the same time the
#: engine waits for a host that does not answer.
SILENCE_S = 600.0
#: Files that were unused for this time are removed from hosts.
KEEP_DAYS = 30.0


def build_step_id(job: Job) -> str:
    """Return the name of the current step on hosts, which is that of its first round.

    A step that continues after an interruption is another step.
    """
    return _format_step_id(job.attempt, job.round, job.interruptions)


def list_earlier_step_ids(job: Job) -> list[str]:
    """Return all names that the current round may have had in earlier attempts of the job."""
    current = build_step_id(job)
    names = (
        _format_step_id(attempt, job.round, interruptions)
        for attempt in range(1, job.attempt + 1)
        for interruptions in range(job.interruptions + 1)
    )
    return [name for name in names if name != current]


def _format_step_id(attempt: int, round_: int, interruptions: int) -> str:
    again = f"-i{interruptions}" if interruptions else ""
    return f"a{attempt}-r{round_}{again}"


def load_silence_s(job: Job) -> float:
    """Return the seconds for which the engine waits for an absent host of the current round.

    Its agent stops the round after the same time without a poll.
    """
    trials = list(filter_step_trials(job).select_related("case"))
    cases = {trial.case_id: trial.case for trial in trials}
    return _compute_silence_s(resolve_cases(read_spec(job.run.definition), cases.values()), trials)


def build_round_plans(job: Job, job_hosts: JobHosts, ports: Mapping[str, int]) -> dict[str, bytes]:
    """Return the plan of the job's current step for each host's label: its planned trials.

    `ports`: the ports on which the named followers listen for their lead.
    """
    trials = list(
        filter_step_trials(job)
        .filter(state=TrialState.PLANNED)
        .select_related("case", "variant__commit")
        .order_by("position")
    )
    stage = _build_stage(job, job_hosts, trials)
    plan = build_shared_plan(job, stage, trials, ports)
    certificates = ensure_certificates(job, stage.spec, job_hosts)
    serving = select_serving_hosts(stage.specs.values(), job_hosts)
    own = {
        job_hosts.label(host): {
            "self": job_hosts.label(host),
            # That of the snapshot, which determines the epoch; the settings may have changed since.
            "tuning": stage.facts[job_hosts.label(host)].get("tuning") or {},
            "run_as": host.run_as or None,
            "owner": str(host.pk),
            "machine_lock": settings.ONE_HOST_PER_MACHINE,
            "env": select_plain_variables(host.env),
            "tls": plan_entry(certificates, serves=host in serving),
            "disk": {"limit_bytes": host.disk_limit_bytes, "keep_days": KEEP_DAYS},
        }
        for host in job_hosts.hosts
    }
    return {label: json.dumps({**plan, **each}, indent=1).encode() for label, each in own.items()}


def drop_cancelled(job: Job, session: HostSession, known: int) -> None:
    """Send the lead the cancelled trials of its round; it knows `known` of them already."""
    cancelled = load_cancelled_trial_ids(job)
    if len(cancelled) > known:
        path = f"jobs/{job.pk}/{build_step_id(job)}/dropped.json"
        session.transport.put(json.dumps(cancelled).encode(), path)


def send_end_of_wait(job: Job, session: HostSession) -> None:
    """Let the trials of the current round start without waiting for quiet hosts."""
    session.transport.put(b"", f"jobs/{job.pk}/{build_step_id(job)}/measure_now")


def _build_stage(job: Job, job_hosts: JobHosts, trials: Sequence[Trial]) -> Stage:
    spec = read_spec(job.run.definition)
    facts = load_facts(job, job_hosts)
    cases = {trial.case_id: trial.case for trial in trials}
    capacities = load_capacities(job)
    pinned = load_pinned_commits(job.run)
    commits = [trial.variant.commit for trial in trials]
    # The tools of all cases of the job, so that every round finds the same ones.
    needs = collect_tool_needs(spec, [case.parameters for case in load_supported_cases(job)])
    return Stage(
        run=job.run,
        spec=spec,
        specs=measure_at_shares(resolve_cases(spec, cases.values()), capacities),
        job_hosts=job_hosts,
        facts=facts,
        tools={
            name: locate_tool(name, facts[job_hosts.label(job_hosts.lead)], features)[0]
            for name, features in needs.items()
        },
        warmups=load_warmup_factors(job),
        capacities=capacities,
        sources=load_sources([*commits, *pinned.values()]),
        pinned=pinned,
    )


def build_shared_plan(
    job: Job, stage: Stage, trials: list[Trial], ports: Mapping[str, int]
) -> dict[str, Any]:
    job_hosts = stage.job_hosts
    texts, planned = _share_texts([_build_trial(stage, trial) for trial in trials])
    return {
        "schema": SCHEMA,
        "job": str(job.pk),
        "step": build_step_id(job),
        "silence_s": _compute_silence_s(stage.specs, trials),
        "lead": job_hosts.label(job_hosts.lead),
        "secret": load_secret(job, job_hosts),
        "hosts": {
            job_hosts.label(host): {
                "address": job_hosts.address(host),
                "port": ports.get(job_hosts.label(host)),
            }
            for host in job_hosts.hosts
        },
        "quiet": {
            "busy_share": THRESHOLDS["busy_before"].value,
            "wait_s": get_limit_s(job),
        },
        "builds": build_builds(job, stage, trials),
        "texts": texts,
        "trials": planned,
    }


def _compute_silence_s(specs: Mapping[int, Spec], trials: Sequence[Trial]) -> float:
    longest = (_find_longest_s(specs[trial.case_id], trial) for trial in trials)
    return max(SILENCE_S, 3 * max(longest, default=0.0))


def _find_longest_s(spec: Spec, trial: Trial) -> float:
    """Return the longest expected duration of a trial, which may run all prepare steps."""
    once = [step for step in spec.prepare if step.each != "trial"]
    return trial.expected_s + sum(step.timeout_s for step in once)


def _share_texts(
    trials: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the texts of all files by their hashes, and the trials with hashes in their place."""
    texts = {text for trial in trials for text in trial["files"].values()}
    names = {text: sha256_hex(text.encode()) for text in texts}
    return {name: text for text, name in names.items()}, [
        {**trial, "files": {path: names[text] for path, text in trial["files"].items()}}
        for trial in trials
    ]


def _build_trial(stage: Stage, trial: Trial) -> dict[str, Any]:
    spec, parameters = stage.specs[trial.case_id], trial.case.parameters
    loads = _lengthen_first_warmup(build_load_specs(spec, parameters), trial, stage.warmups)
    tool = get_tool(spec, parameters)
    sha = trial.variant.commit.sha
    threads = _count_tool_threads(stage, spec)
    started = [(load, each) for load in loads for each in tool.invocations(load, threads)]
    search = spec.load.search
    return {
        "id": str(trial.pk),
        "tree": resolve_trial_recipe(trial, stage).tree(sha),
        "commit": sha,
        "path": _build_paths(stage, spec),
        "server": build_server(stage, spec, parameters),
        "ready": build_ready_check(spec, loads[0]),
        "checks": build_checks(spec, parameters, tool, loads[0]),
        "services": build_services(stage, spec, parameters),
        "prepare": build_prepare_steps(spec, parameters),
        "loads": [_load(load, each, fill_env(spec.load.env, parameters)) for load, each in started],
        "search": None if search is None else _search(search),
        "files": {
            **{f"{FILES}/{path}": text for path, text in spec.files.items()},
            **tool.files(loads[0]),
        },
        "tool": {
            "name": tool.name,
            "path": stage.tools[tool.name],
            "limits": build_limits(spec.limits.generator, TOOL if spec.pin_cpus else None),
            "reader": tool.reader,
            "cpus": threads,
        },
        "shares": build_shares(spec, stage.job_hosts),
        "network": None if loads[0].network is None else loads[0].network.as_dict(),
        "cooldown_s": spec.cooldown_s,
        "expected_s": max(0.0, _estimate_s(stage, trial) - _estimate_overhead_s(spec, loads[0])),
    }


def _count_tool_threads(stage: Stage, spec: Spec) -> int:
    """Return as many threads as the load tool will have CPUs, as far as known."""
    label = stage.job_hosts.get_role_label(HostRole.GENERATOR)
    cpus = predict_placements(spec, stage.job_hosts, stage.facts)[label].cpus.get(TOOL)
    return len(cpus or ()) or stage.facts[label].get("threads") or 1


def _estimate_s(stage: Stage, trial: Trial) -> float:
    """Return the expected duration of a trial; a search in the plan of the run may be replaced."""
    if trial.case_id not in stage.capacities:
        return trial.expected_s
    return estimate_trial_s(stage.specs[trial.case_id], trial.case.parameters)


def _estimate_overhead_s(spec: Spec, load: LoadSpec) -> float:
    """Return the part of the expected duration of a trial that is not its loads."""
    return spec.cooldown_s + TRIAL_OVERHEAD_S + sum_step_limits(spec) + get_network_setup_s(load)


def _build_paths(stage: Stage, spec: Spec) -> dict[str, list[str]]:
    """Return the folders that come first on PATH, for hosts that have some."""
    paths = {label: build_path(facts, spec.requires) for label, facts in stage.facts.items()}
    return {label: path for label, path in paths.items() if path}


def _lengthen_first_warmup(
    loads: Sequence[LoadSpec], trial: Trial, factors: Mapping[int, int]
) -> list[LoadSpec]:
    """Extend only the warm-up at the start of the whole trial."""
    first = replace(loads[0], warmup_s=lengthen_warmup(loads[0].warmup_s, trial.case_id, factors))
    return [first, *loads[1:]]


def _load(load: LoadSpec, started: Invocation, env: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "argv": list(started.argv),
        "env": {**env, **started.env},
        "kind": started.kind,
        "wall_limit_s": started.wall_limit_s,
        "warmup_s": started.warmup_s,
        "good_statuses": list(load.good_statuses),
        "rate": None if load.searching else load.rate,
        "at_once": load.at_once,
    }


def _search(search: Search) -> dict[str, Any]:
    objective = parse_objective(search.objective)
    return {
        "objective": [term.as_dict() for term in objective],
        "requests": count_needed_requests(objective),
        "low": search.low,
        "high": search.high,
        "duration_s": search.probe_s,
        "max_probes": search.max_probes,
        "confirmations": search.confirmations,
    }
