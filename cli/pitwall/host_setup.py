"""`pitwall host setup`: prepare this machine, so that Pitwall can measure on it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Optional

from .bar import Progress
from .errors import NoAnswerError
from .output import Output, Result
from .setup_script import build_setup_script


def set_up_host(args: argparse.Namespace, progress: Progress, output: Output) -> Result:
    """Print the script, ask, and run it; with `--print` only print it."""
    key = _read_key(args.key)
    try:
        script = build_setup_script(args.user, key, tuning=not args.no_tuning)
    except ValueError as error:
        raise NoAnswerError(str(error)) from error
    output.print_text(script)
    runs = not args.print_only
    if runs:
        _require_consent(args)
        _run(script, "undo" if args.undo else "install")
    return Result({"script": script, "ran": runs})


def _read_key(file: Optional[str]) -> str:
    if file is None:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NoAnswerError(f"--key {file} cannot be read: {error}") from error


def _require_consent(args: argparse.Namespace) -> None:
    """Ask whether to run the script that was printed, unless `--yes` answers that."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise NoAnswerError("only root can run this script: use sudo, or save it with --print")
    if args.yes:
        return
    if args.json or not sys.stdin.isatty():
        raise NoAnswerError("nothing was run: add --yes, or answer the question in a terminal")
    what = "Remove what this script installed" if args.undo else "Run this script as root"
    if input(f"{what}? [y/N] ").strip().lower() != "y":
        raise NoAnswerError("nothing was run")


def _run(script: str, action: str) -> None:
    """Run the script; its messages go to standard error, which has no document."""
    done = subprocess.run(
        ["/bin/sh", "-s", action], input=script.encode(), stdout=sys.stderr.fileno(), check=False
    )
    if done.returncode != 0:
        raise NoAnswerError(f"the script failed with status {done.returncode}")
