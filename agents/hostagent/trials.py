"""One trial from the start of the server to the files that it leaves behind."""

from __future__ import annotations

import http.client
import json
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from .errors import TrialFailed
from .files import tail_bytes, write_bytes, write_json
from .load import Outcome, check_output, identify, put_load, tool_path
from .paths import StepDir, tree_dir
from .plan import Load, Trial
from .processes import Child
from .protocol import SCHEMA
from .rows import reduce_rows
from .sample import Sampler
from .server import Server, check_answer, serving

SERVER_LOG_BYTES = 64 * 1024
#: Told the phase and for how long nobody should ask.
Tell = Callable[[str, float], None]


def run_trial(step: StepDir, trial: Trial, tell: Tell, beat: Callable[[], None]) -> None:
    """Leave the trial's files behind, result.json last; TrialFailed says why there are none.

    `beat` is called often while the load runs, and may raise to end everything.
    """
    folder = step.trial(trial.id)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started_at = time.time()
    tool = tool_path(step.root, trial.tool)
    words = {
        "python": sys.executable,
        "tool": str(tool),
        "out": str(folder / "tool.json"),
        "rows": str(folder / "rows.sqlite"),
        "trial_dir": str(folder),
        "tree": str(tree_dir(step.root, trial.tree)),
    }
    tell("starting", 0)
    try:
        with serving(step, trial, words) as server:
            words["port"] = str(server.port)
            measured = _loads(step, trial, server, words, tell, beat)
            tell("stopping", 0)
        _reduce(folder, trial, measured["outcome"])
        result = _result(trial, server, started_at, measured)
        write_json(folder / "result.json", {**result, "tool": identify(trial.tool, tool)})
    finally:
        _shorten(folder / "server.log")
    tell("cooling", 0)
    _pause(trial.cooldown_s, beat)


def _loads(
    step: StepDir,
    trial: Trial,
    server: Server,
    words: dict[str, str],
    tell: Tell,
    beat: Callable[[], None],
) -> dict[str, Any]:
    for load in trial.warmups:
        tell("warming up", 0)
        put_load(step, trial, load, words, lambda _child, _seconds: beat())
        _forget(words)
    tell("measuring", min(trial.expected_s, trial.measure.wall_limit_s))
    sampler = Sampler(server.child)
    outcome = _measure(step, trial, trial.measure, words, sampler, beat)
    usage = sampler.usage(outcome.cpu_s)
    died = server.child.exit_code
    folder = step.trial(trial.id)
    if died is not None:
        raise TrialFailed(
            "server_died", f"the server ended with {died} under load", server.output()
        )
    check_output(folder, outcome, Path(words["out"]), Path(words["rows"]))
    _check_still_right(server, trial)
    return {"outcome": outcome, "usage": usage, "sampler": sampler}


def _measure(
    step: StepDir,
    trial: Trial,
    load: Load,
    words: dict[str, str],
    sampler: Sampler,
    beat: Callable[[], None],
) -> Outcome:
    def while_running(tool: Child, seconds: float) -> None:
        beat()
        sampler(tool, seconds)

    return put_load(step, trial, load, words, while_running)


def _forget(words: dict[str, str]) -> None:
    """What a warm-up wrote must not be taken for the measured load's."""
    for key in ("out", "rows"):
        path = Path(words[key])
        if path.exists():
            path.unlink()


def _check_still_right(server: Server, trial: Trial) -> None:
    try:
        wrong: Optional[str] = check_answer(server.port, trial.ready)
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
    trial: Trial, server: Server, started_at: float, measured: dict[str, Any]
) -> dict[str, Any]:
    outcome: Outcome = measured["outcome"]
    sampler: Sampler = measured["sampler"]
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
        "port": server.port,
        "server_argv": server.argv,
        "server_exit": None,
        "load_started_at": outcome.started_at,
        "load_ended_at": outcome.ended_at,
        "window_s": None,
        "usage": measured["usage"],
        "samples": sampler.samples,
        "load_before": sampler.load_before,
        "hung": outcome.hung,
    }


def _shorten(log: Path) -> None:
    if log.exists():
        write_bytes(log, tail_bytes(log, SERVER_LOG_BYTES))


def _pause(seconds: float, beat: Callable[[], None]) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        beat()
        time.sleep(max(0.0, min(0.05, deadline - time.monotonic())))
