"""How much of the disk mirrors take: a quota of each team, and space that stays free."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from orchestrator.accounts.members import Member
from orchestrator.benchmarks import mirrors
from orchestrator.benchmarks.fetch_requests import fetch_of
from orchestrator.benchmarks.mirrors import size_of
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.services import mirror_of, repository_of
from orchestrator.core.errors import NotReadyError
from tests.support.factories import Personas, commit_files, git, make_repository
from tests.support.fetches import fetch_now, run_fetches

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_settings(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"
    settings.ALLOW_LOCAL_REPOSITORIES = True


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


def test_nothing_is_fetched_or_packed_when_the_disk_is_nearly_full(
    personas: Personas, tmp_path: Path, settings: Any
) -> None:
    project = add_large(personas.alice, tmp_path, "first")
    run_fetches()
    sha = repository_of(project).resolve("main")
    settings.MIN_FREE_DISK_MIB = (shutil.disk_usage(tmp_path).total >> 20) + 1
    repository = repository_of(project)
    with pytest.raises(NotReadyError, match=r"have to stay free; ask whoever runs this Pitwall"):
        repository.fetch()
    for pack in (repository.archive, repository.bundle):
        with (
            mirrors.packed_file(settings.DATA_DIR) as file,
            pytest.raises(NotReadyError, match="have to stay free"),
        ):
            pack(sha, file)
    assert repository.has(sha)
