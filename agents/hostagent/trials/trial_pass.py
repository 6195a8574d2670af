"""One pass of a trial: start its processes, check, run the loads, check again, stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from ..http.answers import AFTER, BEFORE, AnswerLog
from ..load.load_output import LoadFiles, check_exit_code, get_measured_files, get_unmeasured_files
from ..load.load_runner import LoadOutcome
from ..platform.ports import format_host
from ..platform.processes import Child
from ..step.plan import Load
from .answer_sampler import AnswerSampler
from .pass_context import PassContext
from .prepare_runner import Prepared
from .services import TrialProcesses, run_processes
from .trial_checks import TrialChecks

_UNMEASURED = {"primer": "priming", "warmup": "warming up"}


class LoadRecord(NamedTuple):
    """A measured load. `costs`: "usage", "samples", "interference" of LOADED, and "load_before".

    `answers`: ANSWERS of protocol.py. `problem`: that of a check during the load.
    """

    load: Load
    outcome: LoadOutcome
    costs: Mapping[str, Any]
    gap_s: Optional[float]
    files: LoadFiles
    rate: Optional[float]
    answers: Mapping[str, Any]
    problem: Optional[str] = None

    def as_json(self) -> dict[str, Any]:
        """Return LOADED of protocol.py."""
        outcome = self.outcome
        return {
            "argv": outcome.argv,
            "rc": outcome.rc,
            "signal": outcome.signal,
            "rate": self.rate,
            "load_started_at": outcome.started_at,
            "load_ended_at": outcome.ended_at,
            "hung": outcome.hung,
            **{key: self.costs[key] for key in ("usage", "samples", "interference")},
            "peer_gap_s": self.gap_s,
            "answers": self.answers,
        }


@dataclass
class PassRecord:
    """The content of result.json about the passes of a trial; of the last one if they differ."""

    port: Optional[int] = None
    port_checked: Optional[bool] = None
    build: Mapping[str, Any] = field(default_factory=dict)
    server_argv: list[str] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    loads: list[LoadRecord] = field(default_factory=list)
    prepared: dict[int, Prepared] = field(default_factory=dict)


def run_pass(context: PassContext, record: PassRecord) -> None:
    """Run one pass, and add its measured loads to the record if the whole pass succeeded.

    Raises TrialFailed otherwise; UnderLoad if the measured processes failed under load.
    """
    context.report_phase("starting")

    def prepare(after: str, placeholders: Mapping[str, str]) -> None:
        context.prepare.run(context.trial, after, placeholders, context.progress, record.prepared)

    with run_processes(context.all_hosts, context.trial, prepare) as processes:
        record.port, record.server_argv = processes.server.port, processes.server.argv
        record.port_checked = processes.server.port_checked
        record.build = processes.build
        placeholders = _list_placeholders(context, processes)
        trial_checks = TrialChecks(context, processes, placeholders)
        checks = trial_checks.run(BEFORE)
        loads = _run_loads(context, processes, placeholders, len(record.loads), trial_checks)
        checks += trial_checks.run(AFTER)
        context.report_phase("stopping")
    record.checks = checks
    record.loads += _add_answers(loads, trial_checks.log, context)
    record.limits = {**processes.limits(), "tool": loads[-1].outcome.limits}


def _add_answers(loads: list[LoadRecord], log: AnswerLog, context: PassContext) -> list[LoadRecord]:
    log.judge(context.all_hosts.heartbeat)
    return [
        loaded._replace(
            answers={**loaded.answers, **log.as_json(number)}, problem=log.find_problem(number)
        )
        for number, loaded in enumerate(loads)
    ]


def _list_placeholders(context: PassContext, processes: TrialProcesses) -> dict[str, str]:
    server = processes.server
    rate = {} if context.rate is None else {"probe_rate": f"{context.rate:.15g}"}
    return {
        **processes.placeholders,
        **context.all_hosts.build_placeholders(context.trial),
        "tool": str(context.tool),
        "port": str(server.port),
        "bind": server.address,
        "address": format_host(server.address),
        **rate,
    }


def _run_loads(
    context: PassContext,
    processes: TrialProcesses,
    placeholders: Mapping[str, str],
    first: int,
    checks: TrialChecks,
) -> list[LoadRecord]:
    """Run all loads in order; `first` is the number of the first measured one in the trial."""
    loads: list[LoadRecord] = []
    context.progress.begin_loads()
    for load in context.trial.loads:
        context.report_phase(_describe_phase(context, load, len(loads)))
        if load.kind == "measure":
            files = get_measured_files(context.folder, first + len(loads))
            with checks.sample(load, len(loads)) as sampler:
                loads.append(
                    _run_measured_load(context, load, processes, placeholders, files, sampler)
                )
        else:
            files = get_unmeasured_files(context.folder, "unmeasured")
            context.run_load(
                load, placeholders, files, lambda _child, _seconds: context.all_hosts.heartbeat()
            )
            files.remove()
        processes.check_alive()
        if load.kind == "measure":
            check_exit_code(files, loads[-1].outcome.rc, loads[-1].outcome.hung)
    return loads


def _describe_phase(context: PassContext, load: Load, done: int) -> str:
    if load.kind != "measure":
        return _UNMEASURED[load.kind]
    steps = context.trial.measured
    return "measuring" if steps == 1 else f"measuring step {done + 1} of {steps}"


def _run_measured_load(
    context: PassContext,
    load: Load,
    processes: TrialProcesses,
    placeholders: Mapping[str, str],
    files: LoadFiles,
    sampler: AnswerSampler,
) -> LoadRecord:
    monitor = context.all_hosts.monitor(context.trial, processes.running)

    def while_running(tool: Child, seconds: float) -> None:
        context.all_hosts.heartbeat()
        monitor(tool, seconds)
        with context.all_hosts.on_load_side():
            sampler.begin()

    outcome = context.run_load(load, placeholders, files, while_running)
    sampler.end()
    gap_s = context.all_hosts.gap_s()
    costs = monitor.end(outcome.cpu_s)
    rate = load.rate if context.rate is None else context.rate
    return LoadRecord(load, outcome, costs, gap_s, files, rate, sampler.as_json())
