"""Commits keep their places along the default branch; other branches are filed when named."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection

from orchestrator.benchmarks.commit_facts import CommitFacts
from orchestrator.benchmarks.filing import file_default_branch
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.refs import open_repository, resolve_ref
from orchestrator.benchmarks.repository import Repository
from orchestrator.core.errors import ConflictError
from tests.support.factories import Personas, commit_files, git, make_project
from tests.support.fetches import fetch_now

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(personas: Personas, tmp_path: Path) -> Project:
    made, _ = make_project(personas.alice, tmp_path / "origin")
    return made


def places(project: Project) -> dict[str, int | None]:
    return dict(project.commits.values_list("subject", "position"))


def merge_a_branch(origin: Path, *, at: str) -> None:
    """A commit `version 10` from `at`, merged into main."""
    git(origin, "checkout", "--quiet", "-b", "topic", at)
    commit_files(origin, {"topic.txt": "topic"}, 10)
    git(origin, "checkout", "--quiet", "main")
    git(origin, "merge", "--quiet", "--no-ff", "-m", "merge topic", "topic", at=700)


def test_merging_an_old_branch_does_not_change_positions(project: Project, tmp_path: Path) -> None:
    before = places(project)
    merge_a_branch(tmp_path / "origin", at="main~2")
    fetch_now(project)
    after = places(project)
    assert {subject: after[subject] for subject in before} == before
    assert (after["version 10"], after["merge topic"]) == (3, 4)
    mainline = project.commits.filter(mainline=True).order_by("position")
    subjects = list(mainline.values_list("subject", flat=True))
    assert subjects == ["version 1", "version 2", "version 3", "merge topic"]


def test_naming_a_commit_files_all_new_commits_of_the_default_branch(
    project: Project, tmp_path: Path
) -> None:
    commit_files(tmp_path / "origin", {"a": "1"}, 4)
    newest = commit_files(tmp_path / "origin", {"a": "2"}, 5)
    # What a fetch brought whose worker ended before it filed anything.
    open_repository(project).fetch()
    assert resolve_ref(project=project, ref=newest).position == 4
    assert places(project)["version 4"] == 3


def test_commits_dropped_by_a_force_push_lose_their_position(
    project: Project, tmp_path: Path
) -> None:
    git(tmp_path / "origin", "reset", "--quiet", "--hard", "main~1")
    commit_files(tmp_path / "origin", {"a": "other"}, 7)
    fetch_now(project)
    positions = places(project)
    assert positions["version 3"] is None
    assert (positions["version 1"], positions["version 2"], positions["version 7"]) == (0, 1, 2)
    assert not project.commits.get(subject="version 3").mainline


def test_an_unrelated_history_gets_new_positions(project: Project, tmp_path: Path) -> None:
    git(tmp_path / "origin", "checkout", "--quiet", "--orphan", "fresh")
    commit_files(tmp_path / "origin", {"b": "1"}, 8)
    git(tmp_path / "origin", "branch", "--force", "main", "fresh")
    fetch_now(project)
    assert places(project)["version 8"] == 0
    assert set(places(project).values()) == {None, 0}


def test_a_commit_of_another_branch_is_filed_with_its_ancestors(
    project: Project, tmp_path: Path
) -> None:
    origin = tmp_path / "origin"
    git(origin, "checkout", "--quiet", "-b", "topic", "main~1")
    first = commit_files(origin, {"t": "1"}, 11)
    tip = commit_files(origin, {"t": "2"}, 12)
    fetch_now(project)
    commit = resolve_ref(project=project, ref="topic")
    assert (commit.sha, commit.position, commit.parents) == (tip, None, [first])
    assert project.commits.get(sha=first).position is None
    project.refresh_from_db()
    assert dict(project.branches) == {
        "topic": tip,
        "main": project.commits.get(subject="version 3").sha,
    }
    assert project.branches[0][0] == "topic"


class Interrupted(Repository):
    """Something else happens once while git is read."""

    def __init__(self, project: Project, meanwhile: Callable[[], None]) -> None:
        self.__dict__ = open_repository(project).__dict__
        self._meanwhile: Callable[[], None] | None = meanwhile

    def new_since(self, ref: str, other: str, *, limit: int) -> list[CommitFacts]:
        facts = super().new_since(ref, other, limit=limit)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return facts


@pytest.mark.django_db(transaction=True)
def test_git_is_read_without_a_lock_and_again_after_a_concurrent_filing(
    project: Project, tmp_path: Path
) -> None:
    commit_files(tmp_path / "origin", {"a": "1"}, 4)
    open_repository(project).fetch()

    def file_newer() -> None:
        commit_files(tmp_path / "origin", {"a": "2"}, 5)
        open_repository(project).fetch()
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '5s'")
        try:
            ours = Project.objects.get(pk=project.pk)
            file_default_branch(ours, open_repository(ours))
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        meanwhile = Interrupted(project, lambda: pool.submit(file_newer).result())
        file_default_branch(project, meanwhile)
    assert places(project) == {f"version {number}": number - 1 for number in range(1, 6)}
    assert project.commits.filter(mainline=True).count() == 5


def test_commits_of_another_repository_are_not_filed(project: Project, tmp_path: Path) -> None:
    before = places(project)
    commit_files(tmp_path / "origin", {"a": "1"}, 4)
    open_repository(project).fetch()
    move = Project.objects.filter(pk=project.pk).update
    meanwhile = Interrupted(project, lambda: move(repository_url="/elsewhere") and None)
    with pytest.raises(ConflictError, match="got another repository"):
        file_default_branch(project, meanwhile)
    assert places(project) == before


def test_many_hashes_are_searched_for_at_once(project: Project) -> None:
    repository = open_repository(project)
    shas = project.commits.values_list("sha", flat=True)
    assert repository.select_fetched([*shas, "0" * 40]) == set(shas)
    assert repository.select_known(["0" * 40, *shas]) == set(shas)
    assert repository.select_known(["0" * 40]) == repository.select_known([]) == set()
    tip = project.commits.get(subject="version 3").sha
    assert repository.select_reachable(shas, tip, without=f"{tip}~1") == {tip}
    assert repository.select_first_parents([shas[0]], tip) == {shas[0]}
