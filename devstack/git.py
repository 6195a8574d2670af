"""Create git repositories with the same hashes on every machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from devstack.errors import DevstackError


class RepositoryError(DevstackError):
    """A repository cannot be created."""


def commit_all(folder: Path, subject: str, *, date: str) -> None:
    run_git(folder, "add", "--all")
    # A fixed date and a fixed author give the same hashes on every machine.
    run_git(folder, "commit", "--quiet", "--no-verify", "-m", subject, date=date)


def run_git(folder: Path, *args: str, date: str = "") -> str:
    """Return git's output; the user's own settings (signing, hooks) have no influence."""
    stamp = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
    who = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", "Pitwall demo"), ("EMAIL", "demo@pitwall.invalid"))
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *args],
            env={**clean, **quiet, **who, **stamp},
            capture_output=True,
            encoding="utf-8",
        )
    except OSError as error:
        raise RepositoryError(f"This needs git: {error}") from error
    if done.returncode != 0:
        raise RepositoryError(f"git {args[0]} failed in {folder}: {done.stderr.strip()}")
    return done.stdout
