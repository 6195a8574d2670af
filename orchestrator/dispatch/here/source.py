"""Commits of a repository on this machine."""

import gzip
import subprocess
from pathlib import Path

from orchestrator.benchmarks.tree_entries import inspect_commit
from orchestrator.core.errors import InvalidRequestError, NotFoundError


def resolve_commit(repository: Path, ref: str) -> str:
    """Return the full hash of a branch, tag or hash; NotFoundError if it names no commit."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    try:
        return _run_git(repository, *words).decode().strip()
    except subprocess.CalledProcessError as error:
        raise NotFoundError(f"{ref} is not a commit of the repository in {repository}") from error


def build_archive(repository: Path, sha: str) -> bytes:
    """Return the tree of a commit as tar.gz, with the same bytes each time.

    Raise InvalidRequestError for a commit with submodules or files of Git LFS: the archive would
    lack their contents.
    """
    folder = Path(_run_git(repository, "rev-parse", "--absolute-git-dir").decode().strip())
    if submodules := inspect_commit(folder, sha):
        raise InvalidRequestError(
            f"the commit {sha[:10]} has submodules, such as {submodules[0].path}, which are not "
            "measured from a folder of this machine; start the run in Pitwall"
        )
    return gzip.compress(_run_git(repository, "archive", "--format=tar", sha), 6, mtime=0)


def _run_git(repository: Path, *words: str) -> bytes:
    return subprocess.run(
        ["git", *words], cwd=repository, check=True, capture_output=True, stdin=subprocess.DEVNULL
    ).stdout
