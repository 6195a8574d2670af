"""One trial from the start of its parts to the files that it leaves behind."""

from __future__ import annotations

import http.client
import json
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .answers import check_answer
from .errors import TrialFailed
from .files import write_json
from .load import Outcome, check_output, identify, put_load, tool_path
from .paths import StepDir, tree_dir
from .plan import Load, Trial
from .ports import in_url
from .processes import Child
from .protocol import SCHEMA
from .rows import reduce_rows
from .services import Running, running
from .stage import Stage

#: Told the phase and for how long nobody should ask.
Tell = Callable[[str, float], None]


@dataclass(frozen=True)
class Measured:
    """`costs`: "usage", "samples" and "load_before" of result.json."""

    outcome: Outcome
    costs: dict[str, Any]
    gap_s: Optional[float]


def run_trial(stage: Stage, trial: Trial, tell: Tell) -> None:
    """Leave the trial's files behind, result.json last; TrialFailed says why there are none."""
    folder = stage.step.trial(trial.id)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started_at = time.time()
    tool = tool_path(stage.step.root, trial.tool)
    tell("starting", 0)
    with running(stage, trial) as parts:
        words = {**_words(stage.step, trial, tool), **parts.words, **_of_server(parts)}
        measured = _loads(stage, trial, parts, words, tell)
        tell("stopping", 0)
    stopped = time.monotonic()
    tell("cooling", 0)
    # One process reads the rows meanwhile; the machine has most of its rest from that on.
    _reduce(folder, trial, measured.outcome)
    result = _result(stage, trial, parts, started_at, measured)
    write_json(folder / "result.json", {**result, "tool": identify(trial.tool, tool)})
    _pause(stopped + trial.cooldown_s - time.monotonic(), stage.beat)


def _words(step: StepDir, trial: Trial, tool: Path) -> dict[str, str]:
    folder = step.trial(trial.id)
    return {
        "python": sys.executable,
        "tool": str(tool),
        "out": str(folder / "tool.json"),
        "rows": str(folder / "rows.sqlite"),
        "trial_dir": str(folder),
        "tree": str(tree_dir(step.root, trial.tree)),
    }


def _of_server(parts: Running) -> dict[str, str]:
    return {
        "port": str(parts.server.port),
        "bind": parts.server.address,
        "address": in_url(parts.server.address),
    }


def _loads(
    stage: Stage, trial: Trial, parts: Running, words: dict[str, str], tell: Tell
) -> Measured:
    for load in trial.warmups:
        tell("warming up", 0)
        put_load(stage.step, trial, load, words, lambda _child, _seconds: stage.beat())
        _forget(words)
    tell("measuring", min(trial.expected_s, trial.measure.wall_limit_s))
    measured = _measure(stage, trial, trial.measure, parts, words)
    parts.check_alive()
    folder = stage.step.trial(trial.id)
    check_output(folder, measured.outcome, Path(words["out"]), Path(words["rows"]))
    _check_still_right(parts, trial)
    return measured


def _measure(
    stage: Stage, trial: Trial, load: Load, parts: Running, words: dict[str, str]
) -> Measured:
    sampling = stage.sampling(trial, parts.server)

    def while_running(tool: Child, seconds: float) -> None:
        stage.beat()
        sampling(tool, seconds)

    outcome = put_load(stage.step, trial, load, words, while_running)
    gap_s = stage.gap_s()
    return Measured(outcome, sampling.end(outcome.cpu_s), gap_s)


def _forget(words: dict[str, str]) -> None:
    """What a warm-up wrote must not be taken for the measured load's."""
    for key in ("out", "rows"):
        path = Path(words[key])
        if path.exists():
            path.unlink()


def _check_still_right(parts: Running, trial: Trial) -> None:
    server = parts.server
    try:
        wrong: Optional[str] = check_answer(server.address, server.port, trial.ready)
    except (OSError, http.client.HTTPException) as error:
        wrong = f"nothing any more ({error})"
    if wrong:
        raise TrialFailed("wrong_answer", f"after the load the server answers {wrong}")


def _reduce(folder: Path, trial: Trial, outcome: Outcome) -> None:
    """rows.json, and a report that is known to be JSON."""
    try:
        json.loads((folder / "tool.json").read_bytes())
    except ValueError as error:
        raise TrialFailed("tool_failed", f"the load tool's report is no JSON: {error}") from error
    try:
        reduced = reduce_rows(folder / "rows.sqlite", trial.warmup_s)
    except sqlite3.Error as error:
        raise TrialFailed("output_lost", f"the load tool's rows cannot be read: {error}") from error
    write_json(folder / "rows.json", reduced)
    (folder / "rows.sqlite").unlink()


def _result(
    stage: Stage, trial: Trial, parts: Running, started_at: float, measured: Measured
) -> dict[str, Any]:
    outcome = measured.outcome
    ended_at = time.time()
    return {
        "schema": SCHEMA,
        "trial": trial.id,
        "argv": outcome.argv,
        "rc": outcome.rc,
        "signal": outcome.signal,
        "started_at": started_at,
        "ended_at": ended_at,
        "wall_s": ended_at - started_at,
        "port": parts.server.port,
        "server_argv": parts.server.argv,
        "server_exit": None,
        "load_started_at": outcome.started_at,
        "load_ended_at": outcome.ended_at,
        "window_s": None,
        **measured.costs,
        "limits": {"tool": outcome.limits, **parts.limits()},
        "on": {"server": trial.server.on, "tool": stage.plan.me},
        "peer_gap_s": measured.gap_s,
        "hung": outcome.hung,
    }


def _pause(seconds: float, beat: Callable[[], None]) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        beat()
        time.sleep(max(0.0, min(0.05, deadline - time.monotonic())))
