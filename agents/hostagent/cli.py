"""The commands of the agent: one JSON object on stdout and exit status 0, or an error and 1.

Commands are called often and do little, so each one loads only the modules that it needs.
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
from .paths import get_host_lock

_Argument = tuple[str, dict[str, Any]]
_STEP: tuple[_Argument, ...] = (("job", {}), ("step", {}))
_FOLDERS: _Argument = ("--folders", {"nargs": "*", "default": []})
_OFFSET: _Argument = ("--offset", {"type": int, "default": 0})
#: By name: the module and function of the command, its arguments, and its description.
COMMANDS: dict[str, tuple[str, tuple[_Argument, ...], str]] = {
    "facts": ("commands.prepare.facts", (_FOLDERS,), "print the facts of this host"),
    "idle-check": (
        "commands.idle_check.check_idle",
        (),
        "measure for two seconds what other processes use",
    ),
    "check-user": (
        "sandbox.user.check_user",
        (("name", {}),),
        "check that measured code can run as this user",
    ),
    "start": ("commands.start.start", _STEP, "start a supervisor that executes a step"),
    "supervise": ("commands.start.supervise", _STEP, "execute a step in the foreground"),
    "status": ("commands.status.status", (*_STEP, _OFFSET), "print a step's events from an offset"),
    "log": ("commands.status.log", (*_STEP, ("build", {}), _OFFSET), "print a step's build log"),
    "stop": ("commands.stop.stop", _STEP, "stop a step and all its processes"),
    "stop-all": ("commands.stop.stop_all", (), "stop every step below the work directory"),
    "begin-outliving": ("commands.outlive.begin", (), "start a detached process as a test"),
    "end-outliving": ("commands.outlive.end", (), "end it, and print whether it was alive"),
    "prune": (
        "commands.prune.prune",
        (
            ("--keep-days", {"type": float, "required": True}),
            ("--limit-bytes", {"type": int, "default": None}),
        ),
        "remove the files of old jobs",
    ),
    "prepare": (
        "commands.prepare.prepare",
        (
            ("--project", {"default": "none"}),
            ("--commits", {"nargs": "*", "default": []}),
            ("--paths", {"nargs": "*", "default": []}),
            ("--programs", {"nargs": "*", "default": []}),
            _FOLDERS,
            ("--owner", {"default": ""}),
            ("--machine-lock", {"action": "store_true"}),
        ),
        "kill orphans, and print facts, commits and files",
    ),
    "reserve": (
        "commands.reserve.reserve",
        (("time", {"nargs": "?", "metavar": "TIME|off"}), ("reason", {"nargs": "*"})),
        "let no new job start for this time, such as 2h; for people on the host",
    ),
    "has": ("commands.status.has", (("paths", {"nargs": "*"}),), "print which files exist"),
    "commits": (
        "builds.repositories.commits",
        (("project", {}), ("commits", {"nargs": "*"})),
        "print which commits of a project exist",
    ),
    "take-bundle": (
        "builds.repositories.take_bundle",
        (("project", {}), ("name", {})),
        "fetch a git bundle into a project's repository",
    ),
}


def main(argv: Optional[Sequence[str]] = None) -> int:
    arguments = _build_parser().parse_args(argv)
    root = Path(arguments.root).resolve()
    module, _, function = COMMANDS[arguments.command][0].rpartition(".")
    options = _build_command_parser(arguments.command).parse_args(arguments.rest)
    try:
        _undo_leftover_tuning(root)
        answer = getattr(_import_command(module), function)(root, options)
    except AgentError as error:
        answer = {"error": {"code": error.code, "message": error.message}}
    except OSError as error:  # a full disk, a folder of another user
        answer = {"error": {"code": AgentError.code, "message": str(error)}}
    if answer is not None:
        print(json.dumps(answer))
    return 1 if answer is not None and "error" in answer else 0


def _build_parser() -> argparse.ArgumentParser:
    """The command and the rest; argparse's own sub-commands would load much more."""
    parser = argparse.ArgumentParser(
        prog="hostagent",
        formatter_class=_format,
        description="Runs benchmark jobs on this host; see agents/README.md.",
        epilog="; ".join(
            f"{name}: {description}" for name, (_, _, description) in COMMANDS.items()
        ),
    )
    parser.add_argument("--root", required=True, help="the work directory")
    parser.add_argument("command", choices=COMMANDS, help="what to do; see COMMAND --help")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="arguments of the command")
    return parser


def _build_command_parser(command: str) -> argparse.ArgumentParser:
    _, arguments, description = COMMANDS[command]
    parser = argparse.ArgumentParser(
        prog=f"hostagent {command}", formatter_class=_format, description=description
    )
    for argument, settings in arguments:
        parser.add_argument(argument, **settings)
    return parser


def _format(prog: str) -> argparse.HelpFormatter:
    # The width of the terminal would load shutil with its compression modules.
    return argparse.HelpFormatter(prog, width=100)


def _import_command(name: str) -> Any:
    return import_module(f"{__package__}.{name}")


def _undo_leftover_tuning(root: Path) -> None:
    if (root / "tuning.json").exists() and not lock.is_held(get_host_lock(root)):
        _import_command("platform.linux.tuning").undo_leftover_tuning(root)
