"""The demo's git repository: a plain HTTP server in three commits."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from devstack.git import RepositoryError, commit_all, run_git
from devstack.places import CHECKOUT

SOURCE = CHECKOUT / "agents" / "suites" / "hello" / "server.py"
FIRST = "Serve a greeting"
HARMLESS = "Say in the README how to start it"
SLOWER = "Sign each greeting"
DATES = {FIRST: "2026-01-05T09:00:00Z", HARMLESS: "2026-01-06T09:00:00Z"}
DATES[SLOWER] = "2026-01-07T09:00:00Z"
README = "# Hello\n\nA small HTTP server, made by `make demo`.\n"
HOW = "\nStart it with `python3 server.py --port 8080`.\n"
USUAL_WORK = "WORK = 50\n"
#: About 2.7 times the CPU time per request. On a cloud machine whose speed halved in some trials,
#: 1.7 times (WORK = 150) was inconclusive after seven rounds.
MORE_WORK = "WORK = 300\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """The full hashes of the three commits."""

    first: str
    harmless: str
    slower: str


def create_demo_repository(folder: Path) -> Commits:
    """Return the three commits of the repository in `folder`, which is created if one is missing.

    Later commits are kept. Raises RepositoryError.
    """
    commits = load_known_commits(folder)
    if commits is None or not is_current(folder, commits):
        set_aside(folder)
        make(folder)
        commits = load_known_commits(folder)
    if commits is None:
        raise RepositoryError(f"The commits of {folder} are not what was just committed there.")
    return commits


def set_aside(folder: Path) -> None:
    """Keep it under another name: the user may have changed something in it."""
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)


def make(folder: Path) -> None:
    source = SOURCE.read_text(encoding="utf-8")
    if source.count(USUAL_WORK) != 1:
        raise RepositoryError(f"{SOURCE} does not have one line `{USUAL_WORK.strip()}`.")
    folder.mkdir(parents=True)
    run_git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "server.py").write_text(source)
    (folder / "README.md").write_text(README)
    commit_version(folder, FIRST)
    (folder / "README.md").write_text(README + HOW)
    commit_version(folder, HARMLESS)
    (folder / "server.py").write_text(source.replace(USUAL_WORK, MORE_WORK))
    commit_version(folder, SLOWER)


def commit_version(folder: Path, subject: str) -> None:
    commit_all(folder, subject, date=DATES[subject])


def load_known_commits(folder: Path) -> Commits | None:
    if not (folder / ".git").is_dir():
        return None
    hashes: dict[str, str] = {}
    for line in run_git(folder, "log", "--format=%H %s").splitlines():
        sha, _, subject = line.partition(" ")
        hashes[subject] = sha
    if not all(subject in hashes for subject in DATES):
        return None
    return Commits(first=hashes[FIRST], harmless=hashes[HARMLESS], slower=hashes[SLOWER])


def is_current(folder: Path, commits: Commits) -> bool:
    """Return whether the servers are those that this Pitwall would commit."""
    source = SOURCE.read_text(encoding="utf-8")
    slower = source.replace(USUAL_WORK, MORE_WORK)
    wanted = {commits.first: source, commits.slower: slower}
    return all(read_server_source(folder, sha) == text for sha, text in wanted.items())


def read_server_source(folder: Path, sha: str) -> str:
    return run_git(folder, "show", f"{sha}:server.py")
