"""A suite of the catalogue as a separate git repository, so that it can be measured."""

from __future__ import annotations

import shutil
from pathlib import Path

from devstack.git import commit_all, run_git
from devstack.places import CHECKOUT

SUITES = CHECKOUT / "agents" / "suites"
DATE = "2026-01-05T09:00:00Z"
#: Files that a manual run of a suite leaves behind.
NOT_SOURCE = ("__pycache__", "*.pyc", "node_modules", "target", ".venv")


def build_suite_repository(suite: str, folder: Path) -> str:
    """Return the full hash of the suite's latest commit in the repository `folder`.

    The repository is created if needed. Changes of the suite are committed on top. Raises
    RepositoryError.
    """
    if not (folder / ".git").is_dir():
        folder.mkdir(parents=True)
        run_git(folder, "init", "--quiet", "--initial-branch=main")
    for old in folder.iterdir():
        if old.name != ".git":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    ignored = shutil.ignore_patterns(*NOT_SOURCE)
    shutil.copytree(SUITES / suite, folder, ignore=ignored, dirs_exist_ok=True)
    if run_git(folder, "status", "--porcelain"):
        commit_all(folder, f"The suite {suite}", date=DATE)
    return run_git(folder, "rev-parse", "HEAD").strip()
