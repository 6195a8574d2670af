"""The plan of one round, as the agent gets it (`plan.json`; see agents/hostagent/protocol.py)."""

import json
from typing import Any

from agents.hostagent.protocol import SCHEMA
from orchestrator.benchmarks.loads import load_spec_of
from orchestrator.benchmarks.matrix import fill
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.ids import digest_of
from orchestrator.dispatch.plan import cpu_sets
from orchestrator.dispatch.tools import tool_path
from orchestrator.loadtools.registry import TOOLS
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.states import TrialState

SILENCE_S = 600.0


def step_id(job: Job) -> str:
    return f"a{job.attempt}-r{job.round}"


def source_path(sha: str) -> str:
    return f"sources/{sha}.tar.gz"


def plan_of_round(job: Job) -> bytes:
    """The plan of the job's current round: its trials that are still to be measured."""
    spec = spec_of(job.run.definition)
    trials = list(
        job.trials.filter(round=job.round, state=TrialState.PLANNED)
        .select_related("case", "variant__commit")
        .order_by("position")
    )
    longest = max((trial.expected_s for trial in trials), default=0.0)
    facts = job.snapshot.facts if job.snapshot else {}
    return json.dumps(
        {
            "schema": SCHEMA,
            "job": str(job.pk),
            "step": step_id(job),
            "silence_s": max(SILENCE_S, 3 * longest),
            "builds": _builds(spec, trials),
            "trials": [_trial(spec, facts, trial) for trial in trials],
        },
        indent=1,
    ).encode()


def _builds(spec: Spec, trials: list[Trial]) -> list[dict[str, Any]]:
    return [
        {
            "commit": sha,
            "source": source_path(sha),
            "tree": _tree(spec, sha),
            "steps": spec.subject.build,
            "env": spec.subject.env,
            "timeout_s": spec.subject.build_timeout_s,
        }
        for sha in dict.fromkeys(trial.variant.commit.sha for trial in trials)
    ]


def _tree(spec: Spec, sha: str) -> str:
    """A build is shared by all that build the commit by the same recipe."""
    recipe = digest_of([spec.subject.build, spec.subject.env])
    return f"builds/{sha}-{recipe[:16]}"


def _trial(spec: Spec, facts: dict[str, Any], trial: Trial) -> dict[str, Any]:
    parameters = trial.case.parameters
    load = load_spec_of(spec, parameters)
    logical = facts.get("threads") or facts.get("logical_cpus")
    server_cpus, tool_cpus = cpu_sets(logical) if spec.pin_cpus else (None, None)
    sha = trial.variant.commit.sha
    tool = spec.load.tool
    invocations = TOOLS[tool].invocations(load, len(tool_cpus or []) or logical or 1)
    return {
        "id": str(trial.pk),
        "tree": _tree(spec, sha),
        "commit": sha,
        "server": {
            "argv": [fill(word, parameters) for word in spec.subject.start],
            "env": {key: fill(word, parameters) for key, word in spec.subject.env.items()},
            "cpus": server_cpus,
            "port": spec.subject.port,
        },
        "ready": {
            "path": spec.subject.ready.path,
            "status": spec.subject.ready.status,
            "body": spec.subject.ready.body,
            "timeout_s": spec.subject.ready.timeout_s,
        },
        "loads": [
            {"argv": list(each.argv), "kind": each.kind, "wall_limit_s": each.wall_limit_s}
            for each in invocations
        ],
        "tool": {"name": tool, "path": tool_path(tool, facts)[0], "cpus": tool_cpus},
        "warmup_s": load.warmup_s if load.duration_s is not None else 0.0,
        "cooldown_s": spec.cooldown_s,
        "expected_s": trial.expected_s,
    }
