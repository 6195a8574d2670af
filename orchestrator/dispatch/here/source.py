"""Commits of a repository on this machine."""

import gzip
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from orchestrator.benchmarks.lfs_files import select_missing, write_lfs_archive
from orchestrator.benchmarks.lfs_pointers import LfsFile
from orchestrator.benchmarks.lfs_store import LfsStore
from orchestrator.benchmarks.tree_entries import CommitContents, inspect_commit, name_files
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

    Raise InvalidRequestError for a commit with submodules: the archive would lack their contents.
    """
    if submodules := _inspect(repository, sha).submodules:
        raise InvalidRequestError(
            f"the commit {sha[:10]} has submodules, such as {submodules[0].path}, which are not "
            "measured from a folder of this machine; start the run in Pitwall"
        )
    return gzip.compress(_run_git(repository, "archive", "--format=tar", sha), 6, mtime=0)


def list_lfs_files(repository: Path, sha: str) -> list[LfsFile]:
    """Return the files of Git LFS of a commit.

    Raise InvalidRequestError if the content of one of them was not fetched.
    """
    files = _inspect(repository, sha).lfs_files
    if missing := select_missing(_open_store(repository), files):
        raise InvalidRequestError(
            f"this machine lacks the content of files of Git LFS of the commit {sha[:10]}: "
            f"{name_files(sorted(missing.values()))}. Run `git lfs fetch origin {sha[:10]}` in "
            "the repository"
        )
    return files


def pack_lfs_files(repository: Path, files: Iterable[LfsFile], target: BinaryIO) -> None:
    """Write the contents of files from `list_lfs_files` as a tar archive."""
    write_lfs_archive(_open_store(repository), files, target, check=lambda: None)


def _inspect(repository: Path, sha: str) -> CommitContents:
    folder = _run_git(repository, "rev-parse", "--absolute-git-dir").decode().strip()
    return inspect_commit(Path(folder), sha)


def _open_store(repository: Path) -> LfsStore:
    """Return the objects that git-lfs has fetched; all worktrees share them."""
    folder = _run_git(repository, "rev-parse", "--git-common-dir").decode().strip()
    return LfsStore(repository / folder)


def _run_git(repository: Path, *words: str) -> bytes:
    return subprocess.run(
        ["git", *words], cwd=repository, check=True, capture_output=True, stdin=subprocess.DEVNULL
    ).stdout
