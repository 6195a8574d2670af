"""A suite of the catalogue as a git repository of its own, so that it can be measured."""

from __future__ import annotations

import shutil
from pathlib import Path

from devstack.git import commit_all, git
from devstack.places import CHECKOUT

SUITES = CHECKOUT / "agents" / "suites"
DATE = "2026-01-05T09:00:00Z"
#: What running a suite by hand leaves behind.
NOT_SOURCE = ("__pycache__", "*.pyc", "node_modules", "target", ".venv")


def suite_repository(suite: str, folder: Path) -> str:
    """The full hash of the suite's newest commit in the repository `folder`, made where needed.

    A suite that has changed since is committed on top. Raises RepositoryError.
    """
    if not (folder / ".git").is_dir():
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    for old in folder.iterdir():
        if old.name != ".git":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    ignored = shutil.ignore_patterns(*NOT_SOURCE)
    shutil.copytree(SUITES / suite, folder, ignore=ignored, dirs_exist_ok=True)
    if git(folder, "status", "--porcelain"):
        commit_all(folder, f"The suite {suite}", date=DATE)
    return git(folder, "rev-parse", "HEAD").strip()
