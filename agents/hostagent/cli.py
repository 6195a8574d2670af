"""The verbs of the agent: one JSON object on stdout, exit status 0, or an error and 1.

A host is asked often and for little, so each verb loads only the modules that it needs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Optional

from . import lock
from .errors import AgentError
from .paths import host_lock

_Argument = tuple[str, dict[str, Any]]
_STEP: tuple[_Argument, ...] = (("job", {}), ("step", {}))
_OFFSET: _Argument = ("--offset", {"type": int, "default": 0})
#: Verb: the module and function that carry it out, its arguments, and what it does.
VERBS: dict[str, tuple[str, tuple[_Argument, ...], str]] = {
    "facts": ("upkeep.facts", (), "print what this host says of itself"),
    "start": ("start.start", _STEP, "leave a supervisor behind that carries out a step"),
    "supervise": ("start.supervise", _STEP, "carry out a step in the foreground"),
    "status": ("status.status", (*_STEP, _OFFSET), "print a step's events from an offset"),
    "log": ("status.log", (*_STEP, ("commit", {}), _OFFSET), "print a step's build log"),
    "stop": ("stop.stop", _STEP, "end a step and all that it started"),
    "stop-all": ("stop.stop_all", (), "end every step below the work directory"),
    "prune": (
        "upkeep.prune",
        (
            ("--keep-days", {"type": float, "required": True}),
            ("--limit-bytes", {"type": int, "default": None}),
        ),
        "remove what old jobs left",
    ),
    "has": ("status.has", (("paths", {"nargs": "*"}),), "tell which files are there"),
    "commits": (
        "repositories.commits",
        (("project", {}), ("commits", {"nargs": "*"})),
        "tell which commits of a project are there",
    ),
    "take-bundle": (
        "repositories.take_bundle",
        (("project", {}), ("name", {})),
        "take a git bundle into a project's repository",
    ),
}


def main(argv: Optional[Sequence[str]] = None) -> int:
    options = _parser().parse_args(argv)
    root = Path(options.root).resolve()
    module, _, function = VERBS[options.verb][0].partition(".")
    try:
        _undo_left_tuning(root)
        answer = getattr(_module(module), function)(root, options)
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
    verbs = parser.add_subparsers(required=True, metavar="VERB", dest="verb")
    for name, (_, arguments, words) in VERBS.items():
        verb = verbs.add_parser(name, help=words, description=words)
        for argument, settings in arguments:
            verb.add_argument(argument, **settings)
    return parser


def _module(name: str) -> Any:
    return import_module(f"{__package__}.{name}")


def _undo_left_tuning(root: Path) -> None:
    if (root / "tuning.json").exists() and not lock.is_held(host_lock(root)):
        _module("tuning").undo_left(root)
