"""A run gets secrets only if all exist and its commits are on a branch or tag."""

from pathlib import Path

import pytest

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.project_secrets import set_secret
from orchestrator.benchmarks.refs import get_mirror_path, resolve_ref
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.models import Run
from tests.support.factories import (
    DEFINITION,
    Personas,
    commit_files,
    git,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)

ENV = "env: {TOKEN: {secret: APP_TOKEN}}"
WITH_SECRET = DEFINITION.replace("  ready:", f"  {ENV}\n  ready:")
ONE_CASE = DEFINITION.replace("connections: [4]", "connections: [4, 8]") + (
    "options: {connections: {'8': {subject: {%s}}}}\n".replace("%s", ENV)
)


def make_one(personas: Personas, folder: Path, source: str) -> tuple[Project, list[str]]:
    make_local_host(personas.alice)
    project, shas = make_project(personas.alice, folder)
    make_definition(personas.alice, project, source=source)
    return project, shas


def add_token(personas: Personas, project: Project) -> None:
    set_secret(member=personas.alice, project=project, name="APP_TOKEN", value="t0ken-of-app")


def test_a_run_is_refused_until_the_secret_exists(personas: Personas, tmp_path: Path) -> None:
    project, shas = make_one(personas, tmp_path / "repository", WITH_SECRET)
    with pytest.raises(InvalidRequestError, match="names APP_TOKEN, which is no secret"):
        make_run(personas.alice, shas)
    assert not Run.objects.exists()
    add_token(personas, project)
    make_run(personas.alice, shas)


def test_only_the_selected_cases_need_their_secrets(personas: Personas, tmp_path: Path) -> None:
    _, shas = make_one(personas, tmp_path / "repository", ONE_CASE)
    make_run(personas.alice, shas, cases="connections == 4")
    with pytest.raises(InvalidRequestError, match="names APP_TOKEN"):
        make_run(personas.alice, shas)


def test_the_commit_of_a_fork_gets_no_secret_whoever_starts_the_run(
    personas: Personas, tmp_path: Path
) -> None:
    project, shas = make_one(personas, tmp_path / "repository", WITH_SECRET)
    add_token(personas, project)
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "--quiet", str(tmp_path / "repository"), str(fork))
    forked = commit_files(fork, {"server.py": "print(TOKEN)"}, 9)
    mirror = get_mirror_path(project)
    # As the fetch of a pull request stores it.
    git(mirror, "fetch", "--quiet", str(fork), f"{forked}:refs/pitwall/pull/5/head")
    resolve_ref(project=project, ref=forked)
    for commits in ([shas[-1], forked], [forked, shas[-1]]):
        with pytest.raises(InvalidRequestError) as refused:
            make_run(personas.alice, commits)
        assert "is on no branch or tag of the repository" in str(refused.value)
        assert "APP_TOKEN" in str(refused.value)
    # Once a member of the repository has taken it over, it is trusted.
    git(mirror, "update-ref", "refs/tags/v1", forked)
    make_run(personas.alice, [shas[-1], forked])


def test_a_fork_is_measured_without_secrets(personas: Personas, tmp_path: Path) -> None:
    project, shas = make_one(personas, tmp_path / "repository", DEFINITION)
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "--quiet", str(tmp_path / "repository"), str(fork))
    forked = commit_files(fork, {"server.py": ""}, 9)
    git(get_mirror_path(project), "fetch", "--quiet", str(fork), f"{forked}:refs/pitwall/x")
    make_run(personas.alice, [shas[-1], forked])
