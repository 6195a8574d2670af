"""How much of the disk mirrors take: a quota of each team, and space that stays free."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from orchestrator.accounts.members import Member
from orchestrator.benchmarks import fetch_requests, mirrors
from orchestrator.benchmarks.fetch_requests import load_fetch
from orchestrator.benchmarks.mirrors import measure_folder
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import clone_again, create_project
from orchestrator.benchmarks.refs import get_mirror_path, open_repository
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
    error = load_fetch(second).error
    assert "repositories of Red take" in error
    assert "quota is 5.00 MiB; remove large files" in error
    assert not get_mirror_path(second).exists()
    assert all(load_fetch(each).state == "done" for each in (first, theirs))

    # A fetch that brings nothing large still works, and an administrator can raise the quota.
    commit_files(tmp_path / "first", {"a.txt": "two"}, 2)
    fetch_now(first)
    call_command("quota", "red", "--mirrors-mib", "20")
    fetch_now(second)
    assert sum(measure_folder(get_mirror_path(each)) for each in (first, second)) > 6 << 20


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
    assert "choose Clone again" in load_fetch(project).error
    before = measure_folder(get_mirror_path(project))

    with pytest.raises(PermissionRefusedError):
        clone_again(member=personas.bob, project=project)
    clone_again(member=personas.alice, project=project)
    run_fetches()
    fetch = load_fetch(project)
    assert (fetch.state, fetch.clone) == ("done", False)
    assert measure_folder(get_mirror_path(project)) < 5 << 20 < before
    assert [
        each.name for each in get_mirror_path(project).parent.glob("*.git*") if each.is_dir()
    ] == [get_mirror_path(project).name]
    fetch_now(project)


def test_a_failed_new_clone_keeps_the_mirror(personas: Personas, tmp_path: Path) -> None:
    project = add_large(personas.alice, tmp_path, "first")
    run_fetches()
    (tmp_path / "first").rename(tmp_path / "away")
    clone_again(member=personas.alice, project=project)
    run_fetches()
    assert load_fetch(project).state == "failed"
    assert open_repository(project).branches() == ["main"]


def test_git_collects_garbage_after_a_fetch_and_not_during_it(
    personas: Personas, tmp_path: Path
) -> None:
    project = add_large(personas.alice, tmp_path, "first")
    run_fetches()
    mirror = get_mirror_path(project)
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
    sha = open_repository(project).resolve("main")
    settings.MIN_FREE_DISK_MIB = (shutil.disk_usage(tmp_path).total >> 20) + 1
    repository = open_repository(project)
    with pytest.raises(NotReadyError, match=r"must stay free; ask your administrator"):
        repository.fetch()
    for pack in (repository.archive, repository.bundle):
        with (
            mirrors.open_pack_file(settings.DATA_DIR) as file,
            pytest.raises(NotReadyError, match="must stay free"),
        ):
            pack(sha, file)
    assert repository.has(sha)
