"""A run resolves the commits of other repositories once, and keeps their hashes."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.spec import parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.dispatch.recipes import resolve_recipe
from orchestrator.runs.models import Run
from orchestrator.runs.pinned_repositories import load_pinned_commits, read_pins
from tests.support.factories import (
    DEFINITION,
    Personas,
    commit_files,
    git,
    make_definition,
    make_local_host,
    make_project,
    make_repository,
    make_run,
)
from tests.support.fetches import fetch_now, run_fetches

REPOSITORIES = "repositories:\n  framework: {project: framework, ref: REF}\n"


def with_framework(ref: str, matrix: str = "") -> str:
    source = DEFINITION + REPOSITORIES.replace("REF", ref)
    return source.replace("matrix:\n", f"matrix:\n  {matrix}\n") if matrix else source


@pytest.fixture
def framework(personas: Personas, data_dir: Path, tmp_path: Path) -> list[str]:
    """The commits of another project of the team: `v1` and `main`."""
    shas = make_repository(tmp_path / "framework", [{"word.txt": "one"}, {"word.txt": "two"}])
    git(tmp_path / "framework", "tag", "v1", shas[0])
    url = str(tmp_path / "framework")
    project = create_project(
        member=personas.alice, slug="framework", name="Framework", repository_url=url
    )
    fetch_now(project)
    return shas


def start(personas: Personas, tmp_path: Path, source: str) -> Run:
    project, shas = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project, source=source)
    make_local_host(personas.alice)
    return make_run(personas.alice, shas[:2])


def test_a_branch_is_resolved_when_the_run_is_created(
    personas: Personas, framework: list[str], tmp_path: Path
) -> None:
    run = start(personas, tmp_path, with_framework("main"))
    commit_files(tmp_path / "framework", {"word.txt": "three"}, 9)
    ((pin, commit),) = load_pinned_commits(run).items()
    fetch_now(commit.project)
    assert pin.sha == commit.sha == framework[1]
    again = make_run(personas.alice, [each.commit.sha for each in run.variants.all()])
    assert read_pins(again.repositories)[0].sha not in framework


def test_each_value_of_an_axis_is_resolved(
    personas: Personas, framework: list[str], tmp_path: Path
) -> None:
    run = start(personas, tmp_path, with_framework('"{version}"', "version: [v1, main]"))
    assert {pin.ref: pin.sha for pin in read_pins(run.repositories)} == {
        "v1": framework[0],
        "main": framework[1],
    }


def test_projects_of_other_teams_are_unknown(
    personas: Personas, framework: list[str], tmp_path: Path
) -> None:
    project, shas = make_project(personas.mallory, tmp_path / "origin")
    make_definition(personas.mallory, project, source=with_framework("v1"))
    make_local_host(personas.mallory)
    with pytest.raises(InvalidRequestError, match="has no project framework") as caught:
        make_run(personas.mallory, shas[:2])
    assert caught.value.field == "repositories.framework.project"


def test_an_unknown_ref_names_its_field(
    personas: Personas, framework: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequestError, match="v3 in the repository") as caught:
        start(personas, tmp_path, with_framework("v3"))
    assert caught.value.field == "repositories.framework.ref"


def test_the_commit_of_a_fork_is_refused(
    personas: Personas, framework: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "framework"
    git(folder, "checkout", "--quiet", "--detach")
    forked = commit_files(folder, {"word.txt": "of a fork"}, 9)
    git(folder, "update-ref", "refs/pull/5/head", forked)
    git(folder, "checkout", "--quiet", "main")
    project = Project.objects.get(slug="framework")
    request_fetch(project, ["refs/pull/5/head"])
    run_fetches()
    with pytest.raises(InvalidRequestError, match="on no branch or tag") as caught:
        start(personas, tmp_path, with_framework(f'"{forked}"'))
    assert caught.value.field == "repositories.framework.ref"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{project: Upper, ref: v1}", "repositories.framework.project"),
        ("{project: x, ref: --upload-pack=x}", "repositories.framework.ref: expected a tag"),
        ('{project: x, ref: "v{size}"}', "repositories.framework.ref: expected a tag"),
        ('{project: x, ref: "{size}"}', "repositories.framework.ref: {size} is not an axis"),
        ("{project: x}", "repositories.framework.ref: this field is missing"),
        ("{url: https://x, ref: v1}", "unknown field url"),
    ],
)
def test_a_wrong_repository_names_its_field(text: str, problem: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse(f"{DEFINITION}repositories:\n  framework: {text}\n")
    assert problem in str(caught.value)


def test_an_axis_cannot_have_the_name_of_a_folder() -> None:
    with pytest.raises(InvalidRequestError, match="taken by the repository framework"):
        parse(with_framework("v1", "framework_tree: [1]"))


def test_a_recipe_depends_on_the_commits_that_it_uses() -> None:
    source = with_framework("v1").replace(
        "subject:\n",
        "subject:\n  install: {files: [x], steps: [[STEP]]}\n",
    )

    def recipe(step: str, sha: str) -> Any:
        spec = parse(source.replace("STEP", step))
        stored = [{"name": "framework", "project": "framework", "ref": "v1", "sha": sha}]
        parameters = {axis: values[0] for axis, values in spec.matrix.items()}
        return resolve_recipe(spec, parameters, {}, read_pins(stored))

    one, two = recipe("make", "1" * 40), recipe("make", "2" * 40)
    assert one.inputs != two.inputs
    assert one.install["key"] == two.install["key"]
    assert one.install["repositories"] == []
    one, two = (recipe('"{framework_tree}/make"', digit * 40) for digit in "12")
    assert one.install["key"] != two.install["key"]
    assert one.install["repositories"] == ["framework"]
