"""Repositories of suites of the catalogue: fetched without a repository of a team."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks import catalogue
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.refs import open_repository, resolve_ref
from orchestrator.benchmarks.suite_repositories import find_suite_repository
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import Personas
from tests.support.fetches import fetch_now

DEFINITION = "version: 1\ntitle: Small\nsubject: {start: [a, '{port}']}\nload: {path: /}\n"


@pytest.fixture
def suites(settings: Any, tmp_path: Path) -> Path:
    """A catalogue with the suite `small`; repositories of this machine are not allowed."""
    settings.DATA_DIR = tmp_path / "data"
    settings.ALLOW_LOCAL_REPOSITORIES = False
    settings.BASE_DIR = tmp_path
    folder = tmp_path / "agents" / "suites" / "small"
    folder.mkdir(parents=True)
    (folder / "benchmark.yaml").write_text(DEFINITION)
    (folder / "server.py").write_text("print('one')\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "server.pyc").write_text("compiled")
    catalogue._read.cache_clear()
    return folder


def test_a_suite_is_fetched_where_other_local_repositories_are_refused(
    suites: Path, personas: Personas
) -> None:
    project = create_project(
        member=personas.alice, slug="small", name="", repository_url="catalogue:small"
    )
    fetch_now(project)
    commit = resolve_ref(project=project, ref="main")
    repository = open_repository(project)

    assert (commit.subject, commit.parents) == ("The suite small", [])
    assert set(repository.files(commit.sha)) == {"benchmark.yaml", "server.py"}
    assert repository.read(commit.sha, "server.py") == b"print('one')\n"
    with pytest.raises(InvalidRequestError, match="expected a repository address"):
        create_project(
            member=personas.alice,
            slug="other",
            name="",
            repository_url=str(find_suite_repository("catalogue:small")),
        )


def test_a_new_version_of_a_suite_is_a_commit_on_top(suites: Path, personas: Personas) -> None:
    project = create_project(
        member=personas.alice, slug="small", name="", repository_url="catalogue:small"
    )
    fetch_now(project)
    first = resolve_ref(project=project, ref="main")
    fetch_now(project)
    assert resolve_ref(project=project, ref="main") == first
    (suites / "server.py").write_text("print('two')\n")
    fetch_now(project)
    project.refresh_from_db()
    second = resolve_ref(project=project, ref="main")
    assert second.parents == [first.sha]
    assert open_repository(project).read(second.sha, "server.py") == b"print('two')\n"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("catalogue:none", "the catalogue has no suite none"),
        ("catalogue:../small", "expected a repository address"),
        ("catalogue:", "expected a repository address"),
        ("catalogue:small/../../data", "expected a repository address"),
    ],
)
def test_other_addresses_of_the_catalogue_are_refused(
    url: str, problem: str, suites: Path, personas: Personas
) -> None:
    with pytest.raises(InvalidRequestError, match=problem) as caught:
        create_project(member=personas.alice, slug="small", name="", repository_url=url)
    assert caught.value.field == "repository_url"


def test_a_suite_that_a_new_version_lacks_is_reported_by_the_fetch(
    suites: Path, personas: Personas
) -> None:
    project = create_project(
        member=personas.alice, slug="small", name="", repository_url="catalogue:small"
    )
    (suites / "benchmark.yaml").unlink()
    with pytest.raises(AssertionError, match="the catalogue has no suite small"):
        fetch_now(project)
