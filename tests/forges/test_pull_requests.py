"""From `/benchmark` in a comment to the result on the pull request, with each kind of forge."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.benchmarks import fetching
from orchestrator.benchmarks.fetch_requests import load_fetch, request_fetch
from orchestrator.benchmarks.fetching import run_next_fetch
from orchestrator.benchmarks.models import Commit, Fetch, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, PermissionRefusedError
from orchestrator.core.heartbeat import ClaimLost
from orchestrator.database.fair_order import MOST_OF_A_TEAM
from orchestrator.dispatch import background_tasks
from orchestrator.dispatch.shares import TeamShares
from orchestrator.forges import pr_sync
from orchestrator.forges.models import BenchmarkRequest, Connection, PullRequest
from orchestrator.forges.notices import Comment
from orchestrator.forges.pr_sync import (
    FETCH_LOOK_EVERY,
    LOOK_EVERY,
    MOST_FETCHES,
    PAUSES_S,
    load_due_pull_ids,
    sync_pull_request,
)
from orchestrator.forges.services import NewConnection, approve, decline, save_connection
from orchestrator.forges.webhooks import _handle_comment
from orchestrator.runs.models import Run
from tests.support.factories import (
    DEFINITION,
    Personas,
    add_member,
    commit_files,
    finish_run,
    git,
    make_definition,
    make_repository,
)
from tests.support.fetches import follow_pulls, run_fetches
from tests.support.http_servers import StandIn, serve_stand_in
from tests.support.trials import BUSY, ERRORS, invalidate
from tests.support.world import World

pytestmark = pytest.mark.django_db

PULL_REFS = {"gitlab": "refs/merge-requests/5/head"}


@dataclass(kw_only=True)
class PullRequestWorld(World):
    """Pull request 5 of the project has one commit, on no branch."""

    forge: StandIn
    connection: Any = None
    head: str = ""

    @property
    def base(self) -> str:
        return self.shas[-1]

    def push(self) -> str:
        git(self.repository, "checkout", "--quiet", self.head)
        self.head = commit_files(self.repository, {"file.txt": f"{self.head}\n"}, 9)
        git(
            self.repository,
            "update-ref",
            PULL_REFS.get(self.forge.kind, "refs/pull/5/head"),
            "HEAD",
        )
        git(self.repository, "checkout", "--quiet", "main")
        self.forge.head_sha = self.head
        return self.head

    def comment(self, name: str = "hello", *, user: str = "grace", note: int = 77) -> str:
        notice = Comment(
            event="issue_comment", delivery_id=str(note), repository="ada/server", number=5,
            note_id=str(note), user=user, benchmarks=(name,),
        )  # fmt: skip
        return _handle_comment(self.connection, notice)

    def follow(self, later: timedelta = timedelta()) -> None:
        follow_pulls(later)
        if run_fetches():
            follow_pulls(FETCH_LOOK_EVERY)

    @property
    def posted_comment(self) -> str:
        [text] = self.forge.comments.values()
        return text


@pytest.fixture(autouse=True)
def _own_settings(settings: Any, data_dir: Path) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def world(
    personas: Personas, data_dir: Path, tmp_path: Path, request: Any
) -> Iterator[PullRequestWorld]:
    kind = getattr(request, "param", "github")
    with serve_stand_in(kind) as forge:
        world = PullRequestWorld.make(personas, tmp_path, forge=forge)
        new = NewConnection(
            kind=kind, repository="ada/server", api_url=forge.url, token="s3cret",
            allowed_users=("Grace",), hosts=("here",), budget_minutes=30,
        )  # fmt: skip
        saved = save_connection(member=world.alice, project=world.project, new=new)
        world.connection, world.head = saved.connection, world.base
        world.push()
        yield world


def finish(world: PullRequestWorld, rates: list[float]) -> Run:
    return finish_run(Run.objects.latest("created_at"), rates)


@pytest.mark.parametrize("world", ["github", "gitlab", "gitea"], indirect=True)
def test_a_requested_commit_is_measured_and_the_result_commented(
    world: PullRequestWorld, personas: Personas
) -> None:
    assert world.comment() == "hello requested by grace on #5"
    pinned = world.head
    world.follow()
    run = Run.objects.get()

    assert [v.commit.sha for v in run.variants.all()] == [world.base, pinned]
    assert (run.until, run.budget_s, run.requested_by) == ("decided", 1800, personas.alice.user)
    assert "the run is queued" in world.posted_comment
    sha, status = world.forge.statuses[-1]
    assert (sha, status["state"]) == (pinned, "pending")
    entry = AuditEntry.objects.get(action="benchmark_request.started")
    assert entry.subject == f"hello on #5 of ada/server {pinned[:10]}, requested by grace"

    finish(world, [1000, 850])
    world.follow(LOOK_EVERY)
    assert "▼ regressed" in world.posted_comment
    assert "%" in world.posted_comment
    assert f"/runs/{run.pk}/" in world.posted_comment
    sha, status = world.forge.statuses[-1]
    assert (sha, status["state"]) == (
        pinned,
        "failed" if world.forge.kind == "gitlab" else "failure",
    )
    assert status.get("context", status.get("name")) == "pitwall/hello"
    # Nothing is left to do, and no comment is repeated.
    writes = world.forge.writes
    assert PullRequest.objects.get().next_at is None
    world.follow(2 * LOOK_EVERY)
    # The first said that the repository is being fetched.
    assert (writes, world.forge.writes) == (3, 3)


def test_the_head_at_the_request_is_measured_and_no_later_push(world: PullRequestWorld) -> None:
    world.comment()
    pinned = world.head
    world.follow()
    world.push()
    world.follow(LOOK_EVERY)

    assert Run.objects.get().variants.last().commit.sha == pinned
    assert {sha for sha, _ in world.forge.statuses} == {pinned}


def test_an_inconclusive_result_is_commented_with_the_time_still_needed(
    world: PullRequestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The estimate depends on the order of the trials, which is a random one for each run.
    monkeypatch.setattr("orchestrator.runs.services.secrets.randbits", lambda _: 1)
    world.comment()
    world.follow()
    finish_run(Run.objects.get(), [1000, 1010], wobble=0.02)
    world.follow(LOOK_EVERY)

    assert "1 case is inconclusive: `connections 4`." in world.posted_comment
    assert "A decision would take about" in world.posted_comment
    assert world.forge.statuses[-1][1]["state"] == "success"
    assert world.forge.statuses[-1][1]["description"].startswith("inconclusive: ")


def test_a_case_that_no_run_can_decide_is_commented(world: PullRequestWorld) -> None:
    world.comment()
    world.follow()
    finish_run(Run.objects.get(), [1000, 1010], wobble=0.05)
    world.follow(LOOK_EVERY)

    assert "1 may stay open, even with another run." in world.posted_comment
    assert "A decision would take" not in world.posted_comment


def test_only_allowed_users_can_request_a_benchmark(world: PullRequestWorld) -> None:
    assert world.comment(user="eve") == "ignored: eve is not allowed to request benchmarks"
    world.follow()

    assert not BenchmarkRequest.objects.exists()
    assert world.forge.writes == 0


def test_a_comment_is_processed_once(world: PullRequestWorld) -> None:
    world.comment()
    world.follow()
    world.comment()
    world.follow()

    assert Run.objects.count() == 1


def test_a_fork_is_measured_only_after_a_member_approved_the_commit(
    world: PullRequestWorld, personas: Personas
) -> None:
    world.forge.fork = True
    world.comment()
    seen = world.head
    world.follow()
    waiting = BenchmarkRequest.objects.get()

    assert waiting.state == "waiting"
    assert not Run.objects.exists()
    assert not Commit.objects.filter(sha=seen).exists()
    assert "comes from a fork" in world.posted_comment
    world.push()
    with pytest.raises(PermissionRefusedError):
        approve(member=personas.bob, request_id=waiting.pk, sha=seen)
    with pytest.raises(ConflictError):
        approve(member=personas.alice, request_id=waiting.pk, sha=world.head)
    carol = add_member(personas.alice, "carol", Role.MEMBER)
    approve(member=carol, request_id=waiting.pk, sha=seen)
    world.follow()

    run = Run.objects.get()
    assert run.variants.last().commit.sha == seen
    assert run.requested_by == carol.user
    actions = AuditEntry.objects.filter(action__startswith="benchmark_request")
    assert [each.action.partition(".")[2] for each in actions.order_by("pk")] == [
        "approved",
        "started",
    ]


def test_a_declined_fork_is_commented(world: PullRequestWorld, personas: Personas) -> None:
    world.forge.fork = True
    world.comment()
    world.follow()
    decline(member=personas.alice, request_id=BenchmarkRequest.objects.get().pk)
    world.follow()

    assert not Run.objects.exists()
    assert "declined" in world.posted_comment


def test_the_reason_is_commented_if_nothing_was_measured(world: PullRequestWorld) -> None:
    world.comment("no-such")
    world.follow()

    assert "Not measured: `the team has no benchmark no-such" in world.posted_comment
    assert PullRequest.objects.get().next_at is None


def test_a_merged_pull_request_has_nothing_to_measure(world: PullRequestWorld) -> None:
    git(world.repository, "merge", "--quiet", "--ff-only", world.head)
    world.comment()
    world.follow()

    assert "is contained in main: there is nothing to compare" in world.posted_comment
    assert not Run.objects.exists()


def test_all_benchmarks_share_one_comment_that_is_recreated_if_deleted(
    world: PullRequestWorld, personas: Personas
) -> None:
    make_definition(personas.alice, world.connection.project, slug="other")
    world.comment()
    world.follow()
    world.comment("other", note=78)
    world.follow()
    assert world.posted_comment.index("`hello`") < world.posted_comment.index("`other`")

    world.forge.comments.clear()
    world.forge.comments[5] = "somebody else"
    finish_run(Run.objects.latest("created_at"), [1000, 1001])
    world.follow(LOOK_EVERY)
    assert len(world.forge.comments) == 2
    assert world.forge.comments[5] == "somebody else"


def test_an_unavailable_forge_is_retried_later(world: PullRequestWorld) -> None:
    world.forge.down = True
    world.comment()
    world.follow()
    pull = PullRequest.objects.get()
    assert "503" in pull.problem
    assert not Run.objects.exists()

    world.forge.down = False
    world.follow(timedelta(seconds=PAUSES_S[0]))
    pull.refresh_from_db()
    assert Run.objects.count() == 1
    assert pull.problem == ""


def test_a_refused_token_ends_the_retries(world: PullRequestWorld, personas: Personas) -> None:
    new = NewConnection(
        kind="github", repository="ada/server", api_url=world.forge.url, token="wrong",
        allowed_users=("grace",), hosts=("here",),
    )  # fmt: skip
    saved = save_connection(member=personas.alice, project=world.connection.project, new=new)
    world.connection = saved.connection
    world.comment()
    world.follow()

    request = BenchmarkRequest.objects.get()
    assert request.state == "declined"
    assert "401" in request.message
    assert saved.secret == ""


def test_a_claimed_pull_request_is_left_to_its_worker(world: PullRequestWorld) -> None:
    world.comment()
    pull = PullRequest.objects.get()
    taken = pr_sync._claim_pull(pull.pk)
    assert taken is not None
    assert load_due_pull_ids() == []
    assert not sync_pull_request(pull.pk)
    PullRequest.objects.update(claimed_until=Now() - timedelta(seconds=1))
    assert sync_pull_request(pull.pk)
    pr_sync._release_pull(taken, timedelta(), tries=9, problem="late")
    pull.refresh_from_db()
    assert (pull.tries, pull.problem) == (0, ""), "who lost the claim writes nothing"


def test_two_workers_start_one_run(world: PullRequestWorld) -> None:
    """Even where the first one was taken for dead and goes on later."""
    world.comment()
    world.follow()
    Run.objects.all().delete()
    BenchmarkRequest.objects.update(state="requested", run=None)
    first, second = BenchmarkRequest.objects.get(), BenchmarkRequest.objects.get()
    pr_sync._create_run(first, world.connection, world.base)
    with pytest.raises(ClaimLost), transaction.atomic():
        pr_sync._create_run(second, world.connection, world.base)
    assert Run.objects.count() == 1
    assert BenchmarkRequest.objects.get().run == Run.objects.get()


def test_a_fetch_is_requested_with_its_time(
    world: PullRequestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SystemExit

    world.comment()
    with monkeypatch.context() as patch:
        patch.setattr(pr_sync, "request_fetch", fail)
        with pytest.raises(SystemExit):
            follow_pulls()
    assert BenchmarkRequest.objects.get().fetch_requested_at is None
    PullRequest.objects.update(claimed_until=Now() - timedelta(seconds=1))
    world.follow()
    assert Run.objects.count() == 1


def test_due_pull_requests_of_one_team_do_not_hide_others(
    world: PullRequestWorld, personas: Personas
) -> None:
    project = Project.objects.create(team=personas.mallory.team, slug="s", name="s")
    other = Connection.objects.create(
        project=project, kind="github", repository="eve/s", sealed_secret=b"", created_at=utc_now()
    )
    for connection, count in ((world.connection, MOST_OF_A_TEAM + 5), (other, 1)):
        PullRequest.objects.bulk_create(
            PullRequest(connection=connection, number=number, next_at=Now() - LOOK_EVERY)
            for number in range(1, count + 1)
        )
    due = load_due_pull_ids()
    assert len(due) == MOST_OF_A_TEAM + 1
    assert due.index(PullRequest.objects.get(connection=other).pk) < 2


def test_a_slow_forge_leaves_threads_to_other_teams(
    world: PullRequestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.comment()
    pull = PullRequest.objects.get()
    shares = TeamShares(1)
    monkeypatch.setattr(background_tasks, "BACKGROUND_SHARES", shares)
    with shares.admit(world.connection.project.team_id):
        background_tasks.sync_pull(str(pull.pk))
        assert world.forge.writes == 0
    background_tasks.sync_pull(str(pull.pk))
    assert world.forge.writes > 0


def test_a_ref_that_waits_for_a_fetch_is_not_refused(
    world: PullRequestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one ref is gone, the others are fetched one by one, in more than one fetch."""
    monkeypatch.setattr(fetching, "REFS_S", 0.0)
    request_fetch(world.connection.project, ["refs/pull/3/head", "refs/pull/4/head"])
    world.comment()
    follow_pulls()
    run_next_fetch()
    assert load_fetch(world.connection.project).refs == ["refs/pull/4/head", "refs/pull/5/head"]
    follow_pulls(FETCH_LOOK_EVERY)
    assert BenchmarkRequest.objects.get().state == "requested"
    run_fetches()
    follow_pulls(FETCH_LOOK_EVERY)
    assert Run.objects.count() == 1
    assert BenchmarkRequest.objects.get().fetches == 1


def test_a_skipped_ref_is_requested_again_a_few_times(world: PullRequestWorld) -> None:
    refs = PULL_REFS.get(world.forge.kind, "refs/pull/5/head")
    git(world.repository, "update-ref", "-d", refs)
    world.comment()
    follow_pulls()
    for _ in range(MOST_FETCHES - 1):
        run_fetches()
        follow_pulls(FETCH_LOOK_EVERY)
        assert BenchmarkRequest.objects.get().state == "requested"
    git(world.repository, "update-ref", refs, world.head)
    run_fetches()
    follow_pulls(FETCH_LOOK_EVERY)
    assert Run.objects.count() == 1

    world.push()
    git(world.repository, "update-ref", "-d", refs)
    world.comment(note=78)
    follow_pulls()
    for _ in range(MOST_FETCHES):
        run_fetches()
        follow_pulls(FETCH_LOOK_EVERY)
    last = BenchmarkRequest.objects.get(note_id="78")
    assert (last.state, last.fetches) == ("declined", MOST_FETCHES)
    assert "is no longer in the repository" in last.message


@pytest.mark.parametrize(
    ("which", "description"),
    [({}, "the run has no usable data"), ({"variant__position": 1}, "nothing could be compared")],
)
def test_a_run_with_invalid_trials_only_is_an_error_and_no_result(
    world: PullRequestWorld, which: dict[str, int], description: str
) -> None:
    world.comment()
    world.follow()
    invalidate(finish(world, [1000, 1000]), BUSY, **which)
    world.follow(LOOK_EVERY)

    _, status = world.forge.statuses[-1]
    assert (status["state"], status["description"]) == ("error", description)
    assert "inconclusive" not in world.posted_comment


@pytest.mark.parametrize("state", ["finished", "failed"])
def test_a_contender_that_fails_has_a_failed_status(world: PullRequestWorld, state: str) -> None:
    """A job fails as a whole if no case of it works."""
    world.comment()
    world.follow()
    run = invalidate(finish(world, [1000, 1000]), ERRORS, variant__position=1)
    Run.objects.filter(pk=run.pk).update(state=state)
    world.follow(LOOK_EVERY)

    _, status = world.forge.statuses[-1]
    assert status["state"] == "failure"
    assert status["description"].startswith("broken: ")
    assert "**✕ broken**" in world.posted_comment


def test_a_new_tag_of_another_repository_is_fetched(
    world: PullRequestWorld, tmp_path: Path
) -> None:
    folder = tmp_path / "framework"
    (sha,) = make_repository(folder, [{"word.txt": "one"}])
    framework = create_project(
        member=world.alice, slug="framework", name="", repository_url=str(folder)
    )
    run_fetches()
    Fetch.objects.filter(project=framework).update(succeeded_at=Now() - timedelta(hours=1))
    git(folder, "tag", "v2")
    repositories = "repositories: {framework: {project: framework, ref: v2}}\n"
    make_definition(world.alice, world.project, source=f"{DEFINITION}{repositories}")
    world.comment()
    world.follow()
    assert not Run.objects.exists()
    world.follow(FETCH_LOOK_EVERY)
    assert Run.objects.get().repositories == [
        {"name": "framework", "project": "framework", "ref": "v2", "sha": sha}
    ]
