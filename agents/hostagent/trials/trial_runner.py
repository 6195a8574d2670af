"""One trial from its first look at the hosts to the files that it leaves behind."""

from __future__ import annotations

import time
from typing import Any

from ..files import write_json
from ..hosts.all_hosts import Stage
from ..load.load_output import reduce
from ..load.load_runner import identify, tool_path
from ..protocol import SCHEMA
from ..step.plan import Trial
from .capacity_search import search
from .pass_context import Run, Tell
from .trial_pass import Record, run_pass


def run_trial(stage: Stage, trial: Trial, tell: Tell) -> None:
    """Leave the trial's files behind, result.json last; TrialFailed says why there are none."""
    started_at = time.time()
    hosts = stage.prepare(trial)
    run = Run(stage, trial, tool_path(stage.step.root, trial.tool), tell)
    record = Record()
    if trial.search is None:
        found = None
        run_pass(run, record)
    else:
        found = search(run, trial.search, record)
    stopped = time.monotonic()
    tell("cooling", 0)
    # One process reads the rows meanwhile; the machine has most of its rest from that on.
    for loaded in record.loads:
        if not loaded.traces.reduced.exists():
            reduce(loaded.traces, trial.tool, loaded.load, loaded.outcome.hung)
    result = {**_result(run, record, started_at), "hosts": hosts, "search": found}
    write_json(run.folder / "result.json", result)
    stage.sleep_until(stopped + trial.cooldown_s)


def _result(run: Run, record: Record, started_at: float) -> dict[str, Any]:
    trial, ended_at = run.trial, time.time()
    return {
        "schema": SCHEMA,
        "trial": trial.id,
        "tree": trial.tree,
        "tool": identify(trial.tool, run.tool),
        "tool_cpus": trial.tool.cpus,
        "started_at": started_at,
        "ended_at": ended_at,
        "wall_s": ended_at - started_at,
        "port": record.port,
        "port_checked": bool(record.port_checked),
        "server_argv": record.server_argv,
        "server_exit": None,
        "checks": record.checks,
        "loads": [loaded.told() for loaded in record.loads],
        "limits": record.limits,
        "on": {"server": trial.server.on, "tool": run.stage.plan.me},
        "load_before": next((loaded.costs["load_before"] for loaded in record.loads), None),
    }
