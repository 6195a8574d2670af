"""One pass of a trial: its parts started anew, asked, put under its loads, asked again, ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from ..builds import installs
from ..load.load_output import Traces, check_end, measured, passing
from ..load.load_runner import Outcome
from ..paths import tree_dir
from ..platform.ports import in_url
from ..platform.processes import Child
from ..sandbox.tls_files import tls_words
from ..step.plan import Load
from .pass_context import Run
from .services import Running, running
from .trial_checks import ask_all

#: For the start and end of the tool itself: a look starts a program on this host, which the last
#: requests of a load would feel.
_SLACK_S = 0.5
_UNMEASURED = {"primer": "priming", "warmup": "warming up"}


class Loaded(NamedTuple):
    """A measured load. `costs`: "usage", "samples", "ambient" of LOADED, and "load_before"."""

    load: Load
    outcome: Outcome
    costs: Mapping[str, Any]
    gap_s: Optional[float]
    traces: Traces
    rate: Optional[float]

    def told(self) -> dict[str, Any]:
        """LOADED of protocol.py."""
        outcome = self.outcome
        return {
            "argv": outcome.argv,
            "rc": outcome.rc,
            "signal": outcome.signal,
            "rate": self.rate,
            "load_started_at": outcome.started_at,
            "load_ended_at": outcome.ended_at,
            "hung": outcome.hung,
            **{key: self.costs[key] for key in ("usage", "samples", "ambient")},
            "peer_gap_s": self.gap_s,
        }


@dataclass
class Record:
    """What result.json tells of the passes of a trial; of the last one where they differ."""

    port: Optional[int] = None
    port_checked: Optional[bool] = None
    server_argv: list[str] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    loads: list[Loaded] = field(default_factory=list)


def run_pass(run: Run, record: Record) -> None:
    """Add the measured loads to the record; each stands there only if the whole pass went well.

    TrialFailed where it did not; UnderLoad where what was measured could not bear its load.
    """
    run.say("starting")
    with running(run.stage, run.trial) as parts:
        record.port, record.server_argv = parts.server.port, parts.server.argv
        record.port_checked = parts.server.port_checked
        words = _words(run, parts)
        checks = ask_all(run, parts, words, "before")
        loads = _loads(run, parts, words, len(record.loads))
        checks += ask_all(run, parts, words, "after")
        run.say("stopping")
    record.checks = checks
    record.loads += loads
    record.limits = {**parts.limits(), "tool": loads[-1].outcome.limits}


def _words(run: Run, parts: Running) -> dict[str, str]:
    server = parts.server
    rate = {} if run.rate is None else {"probe_rate": f"{run.rate:.15g}"}
    return {
        **parts.words,
        **tls_words(run.stage.step, run.stage.plan),
        "python": sys.executable,
        "tool": str(run.tool),
        "trial_dir": str(run.folder),
        "tree": str(tree_dir(run.stage.step.root, run.trial.tree)),
        **installs.words(run.stage.step.root, run.trial.tree),
        "port": str(server.port),
        "bind": server.address,
        "address": in_url(server.address),
        **rate,
    }


def _loads(run: Run, parts: Running, words: Mapping[str, str], first: int) -> list[Loaded]:
    """All loads in turn; `first` is the number of the first measured one."""
    loads: list[Loaded] = []
    quiet = _Quiet(run)
    for load in run.trial.loads:
        run.say(_phase(run, load, len(loads)), quiet.left_s())
        if load.kind == "measure":
            traces = measured(run.folder, first + len(loads))
            loads.append(_measure(run, load, parts, words, traces))
        else:
            traces = passing(run.folder, "unmeasured")
            run.put(load, words, traces, lambda _child, _seconds: run.stage.beat())
            traces.remove()
        parts.check_alive()
        if load.kind == "measure":
            check_end(traces, loads[-1].outcome.rc, loads[-1].outcome.hung)
    return loads


class _Quiet:
    """For how long nobody should ask: to the end of all loads, as a look falls into one of them."""

    def __init__(self, run: Run) -> None:
        trial = run.trial
        expected_s = trial.expected_s
        if trial.search:
            expected_s = sum(load.warmup_s for load in trial.loads) + trial.search.duration_s
        limit_s = sum(load.wall_limit_s for load in trial.loads)
        self._ends = time.monotonic() + min(expected_s, limit_s) + _SLACK_S

    def left_s(self) -> float:
        return round(max(0.0, self._ends - time.monotonic()), 3)


def _phase(run: Run, load: Load, done: int) -> str:
    if load.kind != "measure":
        return _UNMEASURED[load.kind]
    steps = run.trial.measured
    return "measuring" if steps == 1 else f"measuring step {done + 1} of {steps}"


def _measure(
    run: Run, load: Load, parts: Running, words: Mapping[str, str], traces: Traces
) -> Loaded:
    sampling = run.stage.sampling(run.trial, parts.parts)

    def while_running(tool: Child, seconds: float) -> None:
        run.stage.beat()
        sampling(tool, seconds)

    outcome = run.put(load, words, traces, while_running)
    gap_s = run.stage.gap_s()
    costs = sampling.end(outcome.cpu_s)
    return Loaded(load, outcome, costs, gap_s, traces, run.rate)
