"""One trial: wait for quiet hosts, run its passes, write its files."""

from __future__ import annotations

import time
from typing import Any

from ..files import write_json
from ..hosts.all_hosts import AllHosts
from ..load.load_output import reduce_output
from ..load.load_runner import find_tool, hash_program, read_version
from ..protocol import SCHEMA
from ..step.plan import Trial
from .capacity_search import search
from .pass_context import PassContext
from .prepare_runner import PrepareRunner
from .quiet_wait import QuietWait
from .trial_pass import PassRecord, run_pass
from .trial_progress import TrialProgress


def run_trial(
    all_hosts: AllHosts,
    trial: Trial,
    quiet_wait: QuietWait,
    prepare: PrepareRunner,
    progress: TrialProgress,
) -> None:
    """Run the trial and write its files, result.json last; TrialFailed if it has no result."""
    hosts = quiet_wait.prepare(trial, progress)
    progress.begin()
    started_at = time.time()
    tool = find_tool(all_hosts.step.root, trial.tool)
    version = read_version(trial.tool, tool)
    context = PassContext(all_hosts, trial, tool, progress, prepare)
    record = PassRecord()
    search_result = None
    if trial.network is not None:
        progress.report_phase("measuring the network")
    with all_hosts.emulated(trial) as network:
        if trial.search is None:
            run_pass(context, record)
        else:
            search_result = search(context, trial.search, record)
        measured = None if network is None else network.as_json()
    all_hosts.observe()
    # From here on the agent starts no program: its own CPU time is not part of the environment.
    progress.report_phase("reading the results")
    redactor = all_hosts.plan.secrets.redactor
    for loaded in record.loads:
        if not loaded.files.reduced.exists():
            hung = loaded.outcome.hung
            reduce_output(loaded.files, trial.tool, loaded.load, hung, redactor)
    result = {
        **_build_result(context, record, started_at),
        "tool": {"name": trial.tool.name, "version": version, "sha256": hash_program(tool)},
        "hosts": hosts,
        "search": search_result,
        "network": measured,
    }
    write_json(context.folder / "result.json", redactor.redact_json(result))


def _build_result(context: PassContext, record: PassRecord, started_at: float) -> dict[str, Any]:
    trial, ended_at = context.trial, time.time()
    return {
        "schema": SCHEMA,
        "trial": trial.id,
        "tree": trial.tree,
        "tool_cpus": trial.tool_cpus,
        "started_at": started_at,
        "ended_at": ended_at,
        "wall_s": ended_at - started_at,
        "port": record.port,
        "port_checked": bool(record.port_checked),
        "build": dict(record.build),
        "server_argv": record.server_argv,
        "server_exit": None,
        "prepare": [
            prepared.as_json(number) for number, prepared in sorted(record.prepared.items())
        ],
        "checks": record.checks,
        "loads": [loaded.as_json() for loaded in record.loads],
        "limits": record.limits,
        "placement": context.all_hosts.collect_placements(trial),
        "on": {"server": trial.server.on, "tool": context.all_hosts.plan.me},
        "load_before": next((loaded.costs["load_before"] for loaded in record.loads), None),
    }
