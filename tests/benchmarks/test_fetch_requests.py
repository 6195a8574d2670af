"""The queue of fetches: who gets a slot, and what a failure or a crash leaves."""

import fcntl
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.services import create_team, create_user
from orchestrator.benchmarks import fetch_requests, fetching, mirrors, refs, repository
from orchestrator.benchmarks.fetch_requests import request_fetch, request_unknown
from orchestrator.benchmarks.fetching import run_next_fetch
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.refs import (
    FetchRunningError,
    check_fetched,
    get_mirror_path,
    open_repository,
    resolve_after_fetch,
    resolve_ref,
)
from orchestrator.core.errors import InvalidRequestError
from orchestrator.database.clock import read_database_time
from tests.support.factories import (
    PASSWORD,
    Personas,
    commit_files,
    git,
    make_project,
    make_repository,
)
from tests.support.fetches import fetch_now, run_fetches


@pytest.fixture(autouse=True)
def _own_settings(data_dir: Path) -> None:
    """The data folder of each test is its own."""


@pytest.fixture
def project(personas: Personas, tmp_path: Path) -> Project:
    return make_project(personas.alice, tmp_path / "origin")[0]


def make_broken(member: Member, slug: str) -> Project:
    return create_project(member=member, slug=slug, name="", repository_url=f"/nowhere/{slug}")


def test_a_project_is_created_immediately_and_fetched_later(
    personas: Personas, tmp_path: Path
) -> None:
    shas = make_repository(tmp_path / "origin", [{"a": "1"}])
    project = create_project(
        member=personas.alice, slug="x", name="", repository_url=str(tmp_path / "origin")
    )
    assert (project.fetch.state, project.commits.count()) == ("queued", 0)
    assert run_next_fetch() == project.pk
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.next_at, fetch.error) == ("done", None, "")
    assert fetch.mirror_bytes
    assert [each.sha for each in project.commits.all()] == shas
    assert run_next_fetch() is None


def test_a_request_during_a_fetch_causes_another_fetch(project: Project, tmp_path: Path) -> None:
    """What was pushed after its start may not be in it."""
    request_fetch(project)
    claimed = fetching._claim_fetch()
    assert claimed is not None
    assert fetching._claim_fetch() is None, "one fetch a project"
    request_fetch(project, ["refs/heads/main"])
    fetching._end_fetch(claimed, "")
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.refs) == ("queued", ["refs/heads/main"])
    assert run_next_fetch() == project.pk
    assert Fetch.objects.get().next_at is None


def test_a_ref_that_is_requested_during_its_fetch_is_fetched_again(project: Project) -> None:
    request_fetch(project, ["refs/pull/5/head"])
    claimed = fetching._claim_fetch()
    assert claimed is not None
    request_fetch(project, ["refs/pull/5/head"])
    fetching._end_fetch(claimed, "")
    assert Fetch.objects.get().refs == ["refs/pull/5/head"]
    run_fetches()
    assert Fetch.objects.get().refs == []


def test_a_request_repeated_during_its_fetch_causes_no_other_fetch(project: Project) -> None:
    since = read_database_time()
    request_fetch(project)
    claimed = fetching._claim_fetch()
    assert claimed is not None
    request_fetch(project, since=since)
    fetching._end_fetch(claimed, "")
    assert (Fetch.objects.get().state, run_next_fetch()) == ("done", None)


def test_a_failed_fetch_is_retried_later_and_stops_no_other(
    personas: Personas, project: Project
) -> None:
    broken = make_broken(personas.alice, "broken")
    request_fetch(project)
    assert {run_next_fetch(), run_next_fetch()} == {project.pk, broken.pk}
    fetch = Fetch.objects.get(project=broken)
    assert (fetch.state, fetch.failures) == ("failed", 1)
    assert "git cannot read the repository" in fetch.error
    assert "/nowhere" not in fetch.error
    first = fetch.next_at
    assert first is not None
    assert run_next_fetch() is None, "it rests"
    for _ in range(len(fetch_requests.PAUSES_S) + 1):
        run_fetches()
    fetch.refresh_from_db()
    assert fetch.next_at is None, "after the last pause it waits for a request"
    waiting = request_fetch(broken, urgent=False)
    assert waiting.next_at is not None
    assert waiting.ended_at is not None
    assert waiting.next_at - waiting.ended_at == timedelta(seconds=fetch_requests.PAUSES_S[-1])
    urgent = request_fetch(broken)
    assert urgent.next_at is not None
    assert urgent.next_at < waiting.next_at


def test_an_unexpected_error_counts_as_a_failed_fetch(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One hostile repository must not end the worker."""

    def fail(*_: Any) -> None:
        raise ValueError("a date that nobody can read")

    monkeypatch.setattr(fetching, "file_default_branch", fail)
    request_fetch(project)
    assert run_next_fetch() == project.pk
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.error) == (
        "failed", "an internal error; the server's log has the details",
    )  # fmt: skip


def test_the_fetch_of_a_dead_worker_is_claimed_again_and_counts_as_failed(project: Project) -> None:
    request_fetch(project)
    dead = fetching._claim_fetch()
    assert dead is not None
    Fetch.objects.update(claimed_until=read_database_time() - timedelta(seconds=1))
    assert run_next_fetch() is None, "first it rests"
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.failures) == ("failed", 1)
    fetching._end_fetch(dead, "")
    assert Fetch.objects.get().failures == 1, "who lost the claim writes nothing"
    assert run_fetches() == 1
    assert Fetch.objects.get().state == "done"


def test_a_team_can_use_only_some_of_the_slots(personas: Personas, settings: Any) -> None:
    settings.FETCHES_A_TEAM = 2
    for number in range(4):
        make_broken(personas.alice, f"red-{number}")
    blue = make_broken(personas.mallory, "blue")
    Fetch.objects.filter(project=blue).update(next_at=F("next_at") + timedelta(milliseconds=1))
    Fetch.objects.update(next_at=F("next_at") - timedelta(minutes=1))
    claimed = [fetching._claim_fetch() for _ in range(3)]
    teams = [each.project.team.slug for each in claimed if each is not None]
    assert teams == ["red", "red", "blue"]
    assert fetching._claim_fetch() is None
    assert claimed[0] is not None
    fetching._end_fetch(claimed[0], "")
    assert fetching._claim_fetch() is not None, "the slot is free again"


def test_the_last_slots_are_for_teams_without_a_fetch(personas: Personas, settings: Any) -> None:
    settings.FETCH_SLOTS, settings.FETCHES_A_TEAM = 4, 2
    green = create_team(slug="green", name="Green")
    carol = create_user(username="carol", password=PASSWORD, team=green, role=Role.OWNER)
    for member in (personas.alice, personas.mallory):
        for number in range(3):
            make_broken(member, f"{member.team.slug}-{number}")
    claimed = [fetching._claim_fetch() for _ in range(4)]
    teams = [each.project.team.slug for each in claimed if each is not None]
    assert teams == ["red", "red", "blue"], "the fourth slot is for another team"
    make_broken(load_member(carol), "green")
    late = fetching._claim_fetch()
    assert late is not None
    assert late.project.team == green


def test_a_missing_ref_does_not_stop_the_branches(project: Project, tmp_path: Path) -> None:
    newer = commit_files(tmp_path / "origin", {"file.txt": "new"}, 9)
    request_fetch(project, ["refs/pull/5/head"])
    run_fetches()
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.refs) == ("done", [])
    assert project.commits.filter(sha=newer).exists()


def test_one_bad_ref_does_not_stop_the_other_refs(project: Project, tmp_path: Path) -> None:
    sha = commit_files(tmp_path / "origin", {"file.txt": "on no branch"}, 9)
    git(tmp_path / "origin", "update-ref", "refs/pull/5/head", sha)
    git(tmp_path / "origin", "reset", "--hard", "-q", "main~1")
    request_fetch(project, ["refs/pull/4/head", "refs/pull/5/head", "no:name"])
    run_fetches()
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.refs) == ("done", [])
    assert open_repository(project).has(sha)


def test_refs_that_take_too_long_are_left_for_the_next_fetch(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs = ["refs/pull/4/head", "refs/pull/5/head"]
    monkeypatch.setattr(fetching, "REFS_S", 0.0)
    request_fetch(project, refs)
    run_next_fetch()
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.refs) == ("queued", refs[1:]), "each fetch tries one at least"
    run_fetches()
    assert (Fetch.objects.get().state, Fetch.objects.get().refs) == ("done", [])


def test_a_busy_mirror_is_not_a_failure(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "lock_mirror", partial(mirrors.lock_mirror, wait_s=0.0))
    monkeypatch.setattr(repository, "lock_mirror", mirrors.lock_mirror)
    request_fetch(project, ["refs/pull/5/head"])
    with open(f"{get_mirror_path(project)}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run_next_fetch() == project.pk
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.failures, fetch.error) == ("queued", 0, "")
    assert fetch.refs == ["refs/pull/5/head"]
    assert fetch.next_at is not None
    assert fetch.started_at is not None
    assert fetch.next_at >= fetch.started_at + fetching.BUSY_PAUSE
    run_fetches()
    assert Fetch.objects.get().state == "done"


def test_refs_are_resolved_after_a_fetch_since_the_request(
    project: Project, tmp_path: Path
) -> None:
    newer = commit_files(tmp_path / "origin", {"file.txt": "new"}, 9)
    old = project.commits.latest("position").sha
    assert resolve_ref(project=project, ref="main").sha == old
    with resolve_after_fetch(lambda: None):
        with pytest.raises(FetchRunningError):
            resolve_ref(project=project, ref="main")
        # What a hash names never changes.
        assert resolve_ref(project=project, ref=old[:8]).sha == old
        assert resolve_ref(project=project, ref=f"{old}~1").position == 1
    asked_at = read_database_time()
    with resolve_after_fetch(lambda: asked_at):
        with pytest.raises(FetchRunningError):
            resolve_ref(project=project, ref="main~1")
        fetch_now(project)
        assert resolve_ref(project=project, ref="main").sha == newer
        with pytest.raises(InvalidRequestError, match="no commit, branch or tag nowhere"):
            resolve_ref(project=project, ref="nowhere")


@pytest.mark.parametrize("tries", [refs.TRIES, refs.TRIES_UNWATCHED])
def test_a_request_is_refused_after_several_failures(personas: Personas, tries: int) -> None:
    """A server that is away for some seconds refuses nothing."""
    broken = make_broken(personas.alice, "broken")
    asked_at = read_database_time()
    with resolve_after_fetch(lambda: asked_at, tries=tries):
        for _ in range(tries):
            with pytest.raises(FetchRunningError):
                check_fetched(broken, known=False)
            run_fetches()
        with pytest.raises(InvalidRequestError, match="could not be fetched: git cannot read"):
            check_fetched(broken, known=False)


def test_unknown_commits_are_searched_for_at_intervals(project: Project) -> None:
    started = Fetch.objects.get().started_at
    assert started is not None
    request_unknown(project)
    assert run_next_fetch() is None, "too soon"
    fetch = Fetch.objects.get()
    assert fetch.next_at == started + fetch_requests.UNKNOWN_AGAIN
    request_unknown(project)
    assert Fetch.objects.get().requested_at == fetch.requested_at, "that is requested already"
    assert run_fetches() == 1


def test_an_unknown_commit_requested_during_a_fetch_is_searched_for_later(
    project: Project,
) -> None:
    request_fetch(project)
    claimed = fetching._claim_fetch()
    assert claimed is not None
    assert claimed.started_at is not None
    request_unknown(project)
    fetching._end_fetch(claimed, "")
    fetch = Fetch.objects.get()
    assert (fetch.state, fetch.next_at) == (
        "queued", claimed.started_at + fetch_requests.UNKNOWN_AGAIN,
    )  # fmt: skip


def test_a_lost_mirror_is_cloned_again(project: Project, tmp_path: Path) -> None:
    sha = project.commits.latest("position").sha
    get_mirror_path(project).rename(tmp_path / "lost")
    assert not open_repository(project).has(sha)
    fetch_now(project)
    assert open_repository(project).has(sha)


@pytest.fixture
def tarpit() -> Iterator[str]:
    """A git server that takes connections and answers nothing; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/r.git"


@pytest.mark.django_db(transaction=True)
def test_a_hanging_server_blocks_only_its_own_slot(
    personas: Personas, tmp_path: Path, settings: Any, tarpit: str
) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]
    settings.GIT_FETCH_TIMEOUT_S = 20
    slow = create_project(member=personas.mallory, slug="slow", name="", repository_url=tarpit)
    started = threading.Event()

    def fetch_slow() -> None:
        started.set()
        try:
            run_next_fetch()
        finally:
            connection.close()

    thread = threading.Thread(target=fetch_slow)
    thread.start()
    try:
        started.wait()
        while not Fetch.objects.exclude(claim=None).exists():
            pass
        project, shas = make_project(personas.alice, tmp_path / "origin")
        assert project.commits.filter(sha=shas[-1]).exists()
        fetch = Fetch.objects.get(project=slow)
        assert fetch.state == "running", "the other one still hangs"
        with transaction.atomic():
            # Requests are not held up either.
            request_fetch(slow)
    finally:
        thread.join()
    fetch.refresh_from_db()
    assert fetch.failures == 1
    assert fetch.error
    assert "127.0.0.1" not in fetch.error


def test_another_address_has_another_mirror(project: Project, tmp_path: Path) -> None:
    theirs = make_repository(tmp_path / "other", [{"b": "1"}])
    ours = open_repository(project).resolve("main")
    project.repository_url = str(tmp_path / "other")
    project.save()
    assert not open_repository(project).has(ours)
    fetch_now(project)
    assert open_repository(project).has(theirs[0])
    assert not open_repository(project).has(ours)
