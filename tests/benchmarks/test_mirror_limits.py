"""How much of the disk mirrors take: a quota of each team, and space that stays free."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from orchestrator.accounts.members import Member
from orchestrator.benchmarks import fetch_requests, mirrors
from orchestrator.benchmarks.fetch_requests import fetch_of
from orchestrator.benchmarks.mirrors import size_of
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import clone_again, create_project
from orchestrator.benchmarks.refs import mirror_of, repository_of
from orchestrator.core.errors import NotReadyError, PermissionRefusedError
from tests.support.factories import Personas, commit_files, git, make_repository
from tests.support.fetches import fetch_now, run_fetches

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_settings(data_dir: Path) -> None:
    """The data folder of each test is its own."""


def add_large(member: Member, folder: Path, slug: str) -> Project:
    """A project whose mirror takes a little more than 3 MiB; its fetch is requested."""
    make_repository(folder / slug, [{"a.txt": "one"}])
    (folder / slug / "large.bin").write_bytes(os.urandom(3 << 20))
    git(folder / slug, "add", ".")
    git(folder / slug, "commit", "-qm", "large")
    return create_project(member=member, slug=slug, name="", repository_url=str(folder / slug))


def test_the_mirrors_of_a_team_share_a_quota(
    personas: Personas, tmp_path: Path, settings: Any
) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "mirrors_mib": 5}
    first = add_large(personas.alice, tmp_path, "first")
    run_fetches()
    second = add_large(personas.alice, tmp_path, "second")
    theirs = add_large(personas.mallory, tmp_path, "theirs")
    run_fetches()
    error = fetch_of(second).error
    assert "repositories of Red take" in error
    assert "quota is 5.00 MiB; remove large files" in error
    assert not mirror_of(second).exists()
    assert all(fetch_of(each).state == "done" for each in (first, theirs))

    # A fetch that brings nothing large still works, and an administrator can raise the quota.
    commit_files(tmp_path / "first", {"a.txt": "two"}, 2)
    fetch_now(first)
    call_command("quota", "red", "--mirrors-mib", "20")
    fetch_now(second)
    assert sum(size_of(mirror_of(each)) for each in (first, second)) > 6 << 20


def test_a_new_clone_of_a_cleaned_history_gets_a_team_out_of_its_quota(
    personas: Personas, tmp_path: Path, settings: Any
) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "mirrors_mib": 5}
    project = add_large(personas.alice, tmp_path, "first")
    call_command("quota", "red", "--mirrors-mib", "20")
    run_fetches()
    (tmp_path / "first" / "more.bin").write_bytes(os.urandom(3 << 20))
    git(tmp_path / "first", "add", ".")
    git(tmp_path / "first", "commit", "-qm", "more")
    fetch_now(project)
    call_command("quota", "red", "--mirrors-mib", "5")
    git(tmp_path / "first", "reset", "-q", "--hard", "HEAD~1")
    fetch_requests.request_fetch(project)
    run_fetches()
    assert "choose Clone again" in fetch_of(project).error
    before = size_of(mirror_of(project))

    with pytest.raises(PermissionRefusedError):
        clone_again(member=personas.bob, project=project)
    clone_again(member=personas.alice, project=project)
    run_fetches()
    fetch = fetch_of(project)
    assert (fetch.state, fetch.clone) == ("done", False)
    assert size_of(mirror_of(project)) < 5 << 20 < before
    assert [each.name for each in mirror_of(project).parent.glob("*.git*") if each.is_dir()] == [
        mirror_of(project).name
    ]
    fetch_now(project)


def test_a_failed_new_clone_keeps_the_mirror(personas: Personas, tmp_path: Path) -> None:
    project = add_large(personas.alice, tmp_path, "first")
    run_fetches()
    (tmp_path / "first").rename(tmp_path / "away")
    clone_again(member=personas.alice, project=project)
    run_fetches()
    assert fetch_of(project).state == "failed"
    assert repository_of(project).branches() == ["main"]


def test_git_collects_garbage_after_a_fetch_and_not_during_it(
    personas: Personas, tmp_path: Path
) -> None:
    project = add_large(personas.alice, tmp_path, "first")
    run_fetches()
    mirror = mirror_of(project)
    git(mirror, "config", "gc.autoPackLimit", "1")

    def fetch_more(number: int) -> int:
        commit_files(tmp_path / "first", {"a.txt": str(number)}, number)
        fetch_now(project)
        return len(list(mirror.glob("objects/pack/*.pack")))

    assert [fetch_more(number) for number in (2, 3)] == [2, 3]
    os.utime(mirror / "pitwall-gc", (1, 1))
    assert fetch_more(4) == 1


def test_nothing_is_fetched_or_packed_when_the_disk_is_nearly_full(
    personas: Personas, tmp_path: Path, settings: Any
) -> None:
    project = add_large(personas.alice, tmp_path, "first")
    run_fetches()
    sha = repository_of(project).resolve("main")
    settings.MIN_FREE_DISK_MIB = (shutil.disk_usage(tmp_path).total >> 20) + 1
    repository = repository_of(project)
    with pytest.raises(NotReadyError, match=r"must stay free; ask your administrator"):
        repository.fetch()
    for pack in (repository.archive, repository.bundle):
        with (
            mirrors.packed_file(settings.DATA_DIR) as file,
            pytest.raises(NotReadyError, match="must stay free"),
        ):
            pack(sha, file)
    assert repository.has(sha)
