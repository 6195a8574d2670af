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
    "facts": ("commands.prepare.facts", (), "print what this host says of itself"),
    "quiet": ("commands.quiet.quiet", (), "look how much else works here"),
    "user": (
        "sandbox.user.check_user",
        (("name", {}),),
        "check that measured code can run as this user",
    ),
    "start": ("commands.start.start", _STEP, "leave a supervisor behind that carries out a step"),
    "supervise": ("commands.start.supervise", _STEP, "carry out a step in the foreground"),
    "status": ("commands.status.status", (*_STEP, _OFFSET), "print a step's events from an offset"),
    "log": ("commands.status.log", (*_STEP, ("build", {}), _OFFSET), "print a step's build log"),
    "stop": ("commands.stop.stop", _STEP, "end a step and all that it started"),
    "stop-all": ("commands.stop.stop_all", (), "end every step below the work directory"),
    "prune": (
        "commands.prune.prune",
        (
            ("--keep-days", {"type": float, "required": True}),
            ("--limit-bytes", {"type": int, "default": None}),
        ),
        "remove what old jobs left",
    ),
    "ready": (
        "commands.prepare.ready",
        (
            ("--keep-days", {"type": float, "required": True}),
            ("--limit-bytes", {"type": int, "default": None}),
            ("--project", {"default": "none"}),
            ("--commits", {"nargs": "*", "default": []}),
            ("--paths", {"nargs": "*", "default": []}),
            ("--programs", {"nargs": "*", "default": []}),
        ),
        "end leftovers, prune, and tell the facts and what is there",
    ),
    "has": ("commands.status.has", (("paths", {"nargs": "*"}),), "tell which files are there"),
    "commits": (
        "builds.repositories.commits",
        (("project", {}), ("commits", {"nargs": "*"})),
        "tell which commits of a project are there",
    ),
    "take-bundle": (
        "builds.repositories.take_bundle",
        (("project", {}), ("name", {})),
        "take a git bundle into a project's repository",
    ),
}


def main(argv: Optional[Sequence[str]] = None) -> int:
    asked = _parser().parse_args(argv)
    root = Path(asked.root).resolve()
    module, _, function = VERBS[asked.verb][0].rpartition(".")
    options = _parser_of(asked.verb).parse_args(asked.words)
    try:
        _undo_left_tuning(root)
        answer = getattr(_module(module), function)(root, options)
    except AgentError as error:
        answer = {"error": {"code": error.code, "message": error.message}}
    except OSError as error:  # a full disk, a folder of another user
        answer = {"error": {"code": AgentError.code, "message": str(error)}}
    if answer is not None:
        print(json.dumps(answer))
    return 1 if answer is not None and "error" in answer else 0


def _parser() -> argparse.ArgumentParser:
    """The verb and the rest; argparse's own sub-commands would load and make much more."""
    parser = argparse.ArgumentParser(
        prog="hostagent",
        formatter_class=_format,
        description="Runs benchmark jobs on this host; see agents/README.md.",
        epilog="; ".join(f"{name}: {words}" for name, (_, _, words) in VERBS.items()),
    )
    parser.add_argument("--root", required=True, help="the work directory")
    parser.add_argument("verb", choices=VERBS, help="what to do; VERB --help says how")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="arguments of the verb")
    return parser


def _parser_of(verb: str) -> argparse.ArgumentParser:
    _, arguments, words = VERBS[verb]
    parser = argparse.ArgumentParser(
        prog=f"hostagent {verb}", formatter_class=_format, description=words
    )
    for argument, settings in arguments:
        parser.add_argument(argument, **settings)
    return parser


def _format(prog: str) -> argparse.HelpFormatter:
    # To ask for the width of the terminal would load shutil and all that it knows to compress.
    return argparse.HelpFormatter(prog, width=100)


def _module(name: str) -> Any:
    return import_module(f"{__package__}.{name}")


def _undo_left_tuning(root: Path) -> None:
    if (root / "tuning.json").exists() and not lock.is_held(host_lock(root)):
        _module("platform.linux.tuning").undo_leftover_tuning(root)
