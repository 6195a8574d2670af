"""Run `ip` and `tc` of iproute2."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Optional

#: Where they are if the PATH of a login has no folders of the administrator.
_FOLDERS = os.pathsep.join(("/usr/local/sbin", "/usr/sbin", "/sbin"))
_TIMEOUT_S = 10.0

Command = tuple[str, ...]


class CommandFailed(Exception):
    """`ip` or `tc` refused; the message has the command and its answer."""


def find_program(name: str) -> Optional[str]:
    """Return the path of `ip` or `tc`; None if the host has none."""
    return shutil.which(name) or shutil.which(name, path=_FOLDERS)


def run_commands(commands: Iterable[Command]) -> None:
    """Run them in the namespace of this thread; CommandFailed for the first that fails."""
    for command in commands:
        run_command(command)


def run_command(command: Command) -> str:
    """Return the output; CommandFailed if the program is missing or fails."""
    program = find_program(command[0])
    shown = " ".join(command)
    if program is None:
        raise CommandFailed(f"{command[0]} is missing: install iproute2")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandFailed(f"`{shown}`: {error}") from error
    if done.returncode != 0:
        raise CommandFailed(f"`{shown}`: {done.stderr.strip()[-300:]}")
    return done.stdout
