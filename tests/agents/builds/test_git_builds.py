"""Builds out of the repositories that a host keeps, filled from bundles."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.agents.origin import PROJECT, Origin, git_build
from tests.agents.support import SERVER, AgentHost, a_plan, a_trial

ABSENT = "0" * 40


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "origin")


def test_stored_commits_are_listed(host: AgentHost, origin: Origin) -> None:
    first, second = origin.commit(a="1"), origin.commit(a="2")
    none = host.verb("commits", PROJECT, first, second)
    assert none == {"git": True, "present": {first: False, second: False}}
    origin.send(host, first)
    assert host.verb("take-bundle", PROJECT, "b1") == {"taken": "b1"}
    assert not (host.root / "bundles/b1.bundle").exists()
    present = host.verb("commits", PROJECT, first, second, ABSENT)["present"]
    assert present == {first: True, second: False, ABSENT: False}
    origin.send(host, second, first, name="b2")
    host.verb("take-bundle", PROJECT, "b2")
    assert host.verb("commits", PROJECT, second)["present"] == {second: True}


def test_commits_of_each_bundle_are_kept(host: AgentHost, origin: Origin) -> None:
    first = origin.commit(a="1")
    origin.send(host, first)
    host.verb("take-bundle", PROJECT, "b1")
    folder = host.root / f"repositories/{PROJECT}.git"
    refs = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)"], cwd=folder, capture_output=True, text=True
    )
    assert refs.stdout.split() == [f"refs/pitwall/{first}"]
    assert not (folder / "hooks").exists()


def test_missing_git_is_reported(host: AgentHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(host.root))
    assert host.verb("commits", PROJECT, ABSENT) == {"git": False, "present": {ABSENT: False}}


def test_an_old_git_counts_as_missing(host: AgentHost, monkeypatch: pytest.MonkeyPatch) -> None:
    old = host.root / "git"
    old.write_text("#!/bin/sh\necho git version 1.8.3.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{host.root}:/bin:/usr/bin")
    assert host.verb("commits", PROJECT, ABSENT)["git"] is False


@pytest.mark.parametrize("words", [("..", ABSENT), (PROJECT, "main"), (PROJECT, "HEAD~1")])
def test_invalid_names_of_projects_and_commits_are_refused(
    host: AgentHost, words: tuple[str, str]
) -> None:
    assert host.verb("commits", *words)["error"]["code"] == "bad_argument"


def test_a_bundle_that_cannot_be_imported_is_reported(host: AgentHost, origin: Origin) -> None:
    first, second = origin.commit(a="1"), origin.commit(a="2")
    assert host.verb("take-bundle", PROJECT, "none")["error"]["code"] == "bad_argument"
    origin.send(host, second, first)
    error = host.verb("take-bundle", PROJECT, "b1")["error"]
    assert first in error["message"]  # git names the commits that it would need
    assert not (host.root / "bundles/b1.bundle").exists()


def test_a_commit_is_built_once(host: AgentHost, origin: Origin) -> None:
    commit = origin.commit(server_py=SERVER.format(extra=""))
    origin.send(host, commit)
    host.verb("take-bundle", PROJECT, "b1")
    say = ["{python}", "-c", "print('compiling', flush=True)"]
    build = git_build(commit, steps=[say])
    trial = a_trial(host.send_tool(), commit=commit, tree=build["tree"])
    step = host.run_round(a_plan(trial, builds=[build]))
    assert step.only("trial_done"), step.events
    assert step.only("build_done")["cached"] is False
    again = host.run_round(a_plan(trial, builds=[build], step="a1-r2"))
    assert again.only("build_done")["cached"] is True
    assert again.only("trial_done")
    logs = [
        host.verb("log", step.job, name, build["id"], "--offset", "0")["text"]
        for name in ("a1-r1", "a1-r2")
    ]
    assert "compiling" in logs[0]
    assert logs[0] == logs[1] == (host.root / build["tree"] / "build.log").read_text()


def test_a_build_step_can_call_git(host: AgentHost, origin: Origin) -> None:
    commit = origin.commit(server_py=SERVER.format(extra=""))
    origin.send(host, commit)
    host.verb("take-bundle", PROJECT, "b1")
    build = git_build(commit, steps=[["git", "rev-parse", "HEAD"]])
    step = host.run_round(a_plan(builds=[build]))
    assert step.only("build_done"), step.events
    assert commit in host.verb("log", step.job, step.name, build["id"])["text"]


def test_no_git_hooks_or_filters_run(
    host: AgentHost, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "hooks").mkdir(parents=True)
    hook = home / "hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    (home / ".gitconfig").write_text(
        f'[core]\n\thooksPath = {home}/hooks\n[filter "spoil"]\n\tsmudge = sed s/1/2/\n'
    )
    (origin.folder / ".gitattributes").write_text("a filter=spoil\n")
    commit = origin.commit(a="1")
    origin.send(host, commit)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    host.verb("take-bundle", PROJECT, "b1")
    step = host.run_round(a_plan(builds=[git_build(commit)]))
    assert step.only("build_done"), step.events
    assert (host.root / f"builds/{commit}-x/tree/a").read_text() == "1"
    assert not (tmp_path / "hooked").exists()


def test_git_itself_fetches_no_submodule(host: AgentHost, origin: Origin) -> None:
    (origin.folder / ".gitmodules").write_text('[submodule "s"]\n\tpath = s\n\turl = /nowhere\n')
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},s")
    commit = origin.commit(a="1")
    origin.send(host, commit)
    host.verb("take-bundle", PROJECT, "b1")
    step = host.run_round(a_plan(builds=[git_build(commit)]))
    assert step.only("build_done"), step.events


def test_an_interrupted_or_removed_build_is_repeated(host: AgentHost, origin: Origin) -> None:
    commit = origin.commit(a="1")
    origin.send(host, commit)
    host.verb("take-bundle", PROJECT, "b1")
    host.run_round(a_plan(builds=[git_build(commit)]))
    (host.root / f"builds/{commit}-x/.done").unlink()
    (host.root / f"builds/{commit}-x/tree/a").write_text("half")
    step = host.run_round(a_plan(builds=[git_build(commit)], step="a1-r2"))
    assert step.only("build_done")["cached"] is False
    assert (host.root / f"builds/{commit}-x/tree/a").read_text() == "1"


def test_a_missing_commit_is_reported(host: AgentHost, origin: Origin) -> None:
    step = host.run_round(a_plan(builds=[git_build(ABSENT)]))
    assert "no repository" in step.only("build_failed")["message"]
    origin.send(host, origin.commit(a="1"))
    host.verb("take-bundle", PROJECT, "b1")
    step = host.run_round(a_plan(builds=[git_build(ABSENT)], step="a1-r2"))
    assert ABSENT in step.only("build_failed")["message"]


def test_pruned_checkouts_are_forgotten(host: AgentHost, origin: Origin) -> None:
    commit = origin.commit(a="1")
    origin.send(host, commit)
    host.verb("take-bundle", PROJECT, "b1")
    host.run_round(a_plan(builds=[git_build(commit)]))
    worktrees = host.root / f"repositories/{PROJECT}.git/worktrees"
    assert list(worktrees.iterdir())
    for path in (host.root / f"builds/{commit}-x", host.root / f"builds/{commit}-x/.done"):
        os.utime(path, (1, 1))
    assert f"builds/{commit}-x" in host.verb("prune", "--keep-days", "1")["removed"]
    assert not worktrees.exists() or not list(worktrees.iterdir())
    again = host.run_round(a_plan(builds=[git_build(commit)], step="a1-r2"))
    assert again.only("build_done")["cached"] is False
