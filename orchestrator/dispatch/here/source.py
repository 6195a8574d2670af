"""Commits of a repository on this machine."""

import gzip
import subprocess
from pathlib import Path

from orchestrator.core.errors import NotFoundError


def commit_at(repository: Path, ref: str) -> str:
    """The full hash of a branch, tag or hash; NotFoundError where it names no commit there."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    try:
        return _git(repository, *words).decode().strip()
    except subprocess.CalledProcessError as error:
        raise NotFoundError(f"{ref} is no commit of the repository in {repository}") from error


def archive_of(repository: Path, sha: str) -> bytes:
    """The tree of a commit as tar.gz, the same bytes each time."""
    return gzip.compress(_git(repository, "archive", "--format=tar", sha), 6, mtime=0)


def _git(repository: Path, *words: str) -> bytes:
    return subprocess.run(
        ["git", *words], cwd=repository, check=True, capture_output=True, stdin=subprocess.DEVNULL
    ).stdout
