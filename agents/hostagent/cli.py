"""The verbs of the agent: one JSON object on stdout, exit status 0, or an error and 1."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Optional

from . import journal, lock, supervisor
from .errors import AgentError
from .facts import gather
from .paths import StepDir, all_steps, below
from .prune import prune


def main(argv: Optional[Sequence[str]] = None) -> int:
    options = _parser().parse_args(argv)
    root = Path(options.root).resolve()
    try:
        answer = options.verb(root, options)
    except AgentError as error:
        answer = {"error": {"code": error.code, "message": error.message}}
    if answer is not None:
        print(json.dumps(answer))
    return 1 if answer is not None and "error" in answer else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hostagent", description="Runs benchmark jobs on this host; see agents/README.md."
    )
    parser.add_argument("--root", required=True, help="the work directory")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    _verb(verbs, "facts", _facts, "print what this host says of itself")
    for name, verb, words in (
        ("start", _start, "leave a supervisor behind that carries out a step"),
        ("stop", _stop, "end a step and all that it started"),
        ("supervise", _supervise, "carry out a step in the foreground"),
    ):
        _step_words(_verb(verbs, name, verb, words))
    status = _verb(verbs, "status", _status, "print a step's events from an offset")
    _step_words(status)
    status.add_argument("--offset", type=int, default=0)
    _verb(verbs, "stop-all", _stop_all, "end every step below the work directory")
    pruning = _verb(verbs, "prune", _prune, "remove what old jobs left")
    pruning.add_argument("--keep-days", type=float, required=True)
    _verb(verbs, "has", _has, "tell which files are there").add_argument("paths", nargs="*")
    return parser


def _verb(verbs: Any, name: str, run: Callable[..., Any], words: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words)
    parser.set_defaults(verb=run)
    return parser


def _step_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job")
    parser.add_argument("step")


def _step(root: Path, options: argparse.Namespace) -> StepDir:
    return StepDir(root, options.job, options.step)


def _facts(_root: Path, _options: argparse.Namespace) -> dict[str, Any]:
    return {"facts": gather()}


def _start(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    step = _step(root, options)
    program = str(Path(sys.argv[0]).resolve())
    where = ["--root", str(root), "supervise", step.job, step.step]
    return supervisor.start(step, [sys.executable, program, *where])


def _supervise(root: Path, options: argparse.Namespace) -> None:
    supervisor.run(_step(root, options))


def _status(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    step = _step(root, options)
    # Asked before the journal is read: a supervisor that ends in between has written it all.
    alive = lock.is_held(step.lock)
    if step.path.is_dir():
        step.contact.touch()
    events, offset = journal.read_from(step.journal, options.offset)
    return {
        "alive": alive,
        "started": step.pid_file.exists(),
        "offset": offset,
        "events": events,
    }


def _stop(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    return {"stopped": supervisor.stop(_step(root, options))}


def _stop_all(root: Path, _options: argparse.Namespace) -> dict[str, Any]:
    stopped = [
        step for step in all_steps(root) if lock.is_held(step.lock) and supervisor.stop(step)
    ]
    return {"stopped": [f"{step.job}/{step.step}" for step in stopped]}


def _prune(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    return {"removed": prune(root, options.keep_days)}


def _has(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    return {"present": {path: below(root, path).is_file() for path in options.paths}}
