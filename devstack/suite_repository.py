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
#: Files that only reports need: a change of them is no other commit to measure.
FOR_REPORTS = ("report.yaml", "published.*", "README.md")
#: Folders in it, in their order, have the files of earlier commits that differ.
HISTORY = "history"


def build_suite_repository(suite: str, folder: Path) -> list[str]:
    """Return the full hashes of the suite's commits in the repository `folder`, newest last.

    These are its earlier commits, if it has any, and the present one. The repository is created if
    needed. Changes of the suite are committed on top. Raises RepositoryError.
    """
    if not (folder / ".git").is_dir():
        folder.mkdir(parents=True)
        run_git(folder, "init", "--quiet", "--initial-branch=main")
    steps = sorted(each for each in (SUITES / suite / HISTORY).glob("*") if each.is_dir())
    _copy_suite(suite, folder)
    if run_git(folder, "status", "--porcelain"):
        for step in steps:
            shutil.copytree(step, folder, dirs_exist_ok=True)
            commit_all(folder, f"The suite {suite}: {step.name}", date=DATE)
            _copy_suite(suite, folder)
        commit_all(folder, f"The suite {suite}", date=DATE)
    newest = run_git(folder, "rev-list", f"--max-count={len(steps) + 1}", "HEAD").split()
    return newest[::-1]


def _copy_suite(suite: str, folder: Path) -> None:
    """Replace all files of the repository by those of the suite."""
    for old in folder.iterdir():
        if old.name != ".git":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    ignored = shutil.ignore_patterns(*NOT_SOURCE, *FOR_REPORTS)
    shutil.copytree(SUITES / suite, folder, ignore=ignored, dirs_exist_ok=True)
