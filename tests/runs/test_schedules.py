"""A schedule starts runs by itself, once each time that it is due."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest
from django.db import connection

from orchestrator.benchmarks.refs import TRIES_UNWATCHED, FetchRunningError, get_mirror_path
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError
from orchestrator.dispatch.background_tasks import claim_schedules
from orchestrator.runs import schedules
from orchestrator.runs.models import Run, Schedule
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.schedules import (
    NewSchedule,
    compute_next_time,
    create_schedule,
    delete_schedule,
    set_schedule_enabled,
)
from tests.support.factories import (
    NIGHTLY,
    Personas,
    commit_files,
    finish_run,
    git,
    make_definition,
    make_local_host,
    make_nightly_schedule,
    make_personas,
    make_project,
    make_run,
)
from tests.support.fetches import fetch_now, run_fetches


@pytest.fixture
def schedule(personas: Personas, tmp_path: Path) -> Schedule:
    project, _ = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    return make_nightly_schedule(personas.alice)


def make_due(schedule: Schedule) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(next_at=utc_now() - timedelta(days=3))


def tick() -> None:
    """Looks at what is due, and again once the fetches that it requested have ended."""
    claim_schedules()
    if run_fetches():
        claim_schedules()


def test_the_next_time_of_a_schedule_is_computed() -> None:
    after = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    assert compute_next_time("0 3 * * *", after) == datetime(2026, 2, 1, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize("cron", ["", "every day", "61 * * * *", "* * * *", "0 0 31 2 *"])
def test_an_invalid_cron_expression_is_refused(cron: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        compute_next_time(cron, utc_now())
    assert caught.value.field == "cron"


def test_missed_times_start_one_run(schedule: Schedule) -> None:
    make_due(schedule)
    tick()
    tick()
    run = Run.objects.get()
    assert (run.schedule, run.trigger) == (schedule, "schedule")
    schedule.refresh_from_db()
    assert schedule.next_at > utc_now()
    assert str(run.pk) in schedule.last_message


def test_the_reason_is_reported_if_no_run_started(schedule: Schedule) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(contender_ref="gone")
    make_due(schedule)
    tick()
    schedule.refresh_from_db()
    assert "no run was started" in schedule.last_message
    assert "gone" in schedule.last_message


def test_a_disabled_schedule_starts_nothing(personas: Personas, schedule: Schedule) -> None:
    set_schedule_enabled(member=personas.alice, schedule_id=schedule.pk, enabled=False)
    make_due(schedule)
    tick()
    assert not Run.objects.exists()


def test_a_schedule_belongs_to_its_team(personas: Personas, schedule: Schedule) -> None:
    with pytest.raises(NotFoundError):
        delete_schedule(member=personas.mallory, schedule_id=schedule.pk)
    with pytest.raises(ConflictError, match="nightly"):
        create_schedule(member=personas.alice, new=NIGHTLY)


@pytest.fixture
def following(personas: Personas, schedule: Schedule) -> Schedule:
    """For each new commit of main; `schedule` has made all that it needs."""
    new = NewSchedule(name="each", branch="main", benchmark="hello", hosts=("profile:any",))
    return create_schedule(member=personas.alice, new=new)


def start_due_runs(schedule: Schedule) -> list[tuple[str, str]]:
    """Baseline and contender of the runs that one look starts, in the order of their start."""
    known = set(Run.objects.values_list("pk", flat=True))
    make_due(schedule)
    tick()
    schedule.refresh_from_db()
    started = Run.objects.exclude(pk__in=known).filter(schedule=schedule).order_by("created_at")
    return [tuple(each.commit.sha for each in run.variants.all()) for run in started]  # type: ignore[misc]


def test_each_new_commit_of_a_branch_is_measured_once(following: Schedule, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    tip = git(origin, "rev-parse", "main")
    assert start_due_runs(following) == []
    first, second = (commit_files(origin, {"new": str(n)}, 10 + n) for n in (1, 2))
    assert start_due_runs(following) == [(tip, first), (first, second)]
    assert f"{second[:10]}: started run" in following.last_message
    assert start_due_runs(following) == []
    # A merge is one new commit of the branch, whatever came with it.
    git(origin, "checkout", "--quiet", "-b", "side", "main~1")
    commit_files(origin, {"other": "1"}, 20)
    git(origin, "checkout", "--quiet", "main")
    git(origin, "merge", "--quiet", "--no-ff", "side", "-m", "merge", at=1300)
    assert start_due_runs(following) == [(second, git(origin, "rev-parse", "main"))]


def test_the_newest_commits_of_a_large_push_are_measured(
    following: Schedule, tmp_path: Path
) -> None:
    made = [commit_files(tmp_path / "origin", {"new": str(n)}, 10 + n) for n in range(12)]
    assert [contender for _, contender in start_due_runs(following)] == made[2:]
    assert "2 older commits" in following.last_message


def test_an_enabled_schedule_starts_from_now(
    personas: Personas, following: Schedule, tmp_path: Path
) -> None:
    member = personas.alice
    set_schedule_enabled(member=member, schedule_id=following.pk, enabled=False)
    commit_files(tmp_path / "origin", {"new": "1"}, 10)
    assert start_due_runs(following) == []
    set_schedule_enabled(member=member, schedule_id=following.pk, enabled=True)
    assert start_due_runs(following) == []
    newest = commit_files(tmp_path / "origin", {"new": "2"}, 11)
    assert [contender for _, contender in start_due_runs(following)] == [newest]


def test_a_missing_branch_is_reported(following: Schedule, tmp_path: Path) -> None:
    git(tmp_path / "origin", "branch", "-m", "main", "trunk")
    assert start_due_runs(following) == []
    assert "there is no branch main" in following.last_message


def test_a_branch_is_searched_for_in_an_existing_mirror(
    personas: Personas, schedule: Schedule, tmp_path: Path
) -> None:
    project = schedule.benchmark.project
    get_mirror_path(project).rename(tmp_path / "lost")
    new = replace(NIGHTLY, name="other", cron="", branch="main")
    with pytest.raises(FetchRunningError, match="is being fetched"):
        create_schedule(member=personas.alice, new=new)


def test_rounds_follow_from_the_target_resolution(
    personas: Personas, schedule: Schedule, tmp_path: Path
) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(resolution=0.05)
    start_due_runs(schedule)
    assert "the noise of here with this benchmark is unknown" in schedule.last_message
    finish_run(make_run(personas.alice, ("main~1", "main"), rounds=6), [1000, 900], wobble=0.01)
    assert len(start_due_runs(schedule)) == 1
    by_noise = Run.objects.latest("created_at").rounds
    Schedule.objects.filter(pk=schedule.pk).update(resolution=0.035)
    start_due_runs(schedule)
    assert 5 < by_noise < Run.objects.latest("created_at").rounds <= 100


def test_a_schedule_that_could_not_start_now_is_refused(
    personas: Personas, schedule: Schedule
) -> None:
    for changes, field in (
        ({"branch": "gone"}, "branch"),
        ({"cron": "soon"}, "cron"),
        ({"contender_ref": "gone"}, "contenders"),
        ({"hosts": ()}, "hosts"),
        ({"cases": "speed == 1"}, "cases"),
    ):
        new = replace(NIGHTLY, name="other", **changes)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequestError) as caught:
            create_schedule(member=personas.alice, new=new)
        assert caught.value.field == field


def test_a_failing_schedule_is_postponed_and_stops_no_other(
    personas: Personas, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = create_schedule(member=personas.alice, new=replace(NIGHTLY, name="other"))
    make_due(schedule)
    make_due(other)
    request_of = schedules.build_request

    def refuse(each: Schedule, **more: str) -> RunRequest:
        if each.pk == schedule.pk:
            raise ValueError("a date that nobody can read")
        return request_of(each, **more)

    monkeypatch.setattr(schedules, "build_request", refuse)
    tick()
    assert Run.objects.get().schedule == other
    schedule.refresh_from_db()
    assert schedule.failures == 1
    assert "internal error" in schedule.last_message
    assert schedule.next_at < utc_now(), "it is still due"
    assert schedule.not_before is not None
    monkeypatch.undo()
    Schedule.objects.update(not_before=None)
    tick()
    assert Run.objects.filter(schedule=schedule).count() == 1
    for _ in range(len(schedules.PAUSES) + 1):
        schedule.refresh_from_db()
        schedules.reschedule(schedule, now=utc_now())
    schedule.refresh_from_db()
    assert "failed after several internal errors" in schedule.last_message
    assert schedule.next_at > utc_now()


@pytest.mark.django_db(transaction=True)
def test_two_ticks_at_the_same_time_start_each_schedule_once(
    transactional_db: None, tmp_path: Path
) -> None:
    alice = make_personas().alice
    project, _ = make_project(alice, tmp_path / "origin")
    make_definition(alice, project)
    make_local_host(alice)
    for number in range(4):
        make_due(create_schedule(member=alice, new=replace(NIGHTLY, name=f"number {number}")))
    tick()
    Run.objects.all().delete()
    for each in Schedule.objects.all():
        make_due(each)
    together = Barrier(2)

    def tick_alone() -> None:
        try:
            together.wait()
            claim_schedules()
            run_fetches()
            together.wait()
            claim_schedules()
        finally:
            connection.close()

    ticks = [Thread(target=tick_alone) for _ in range(2)]
    for each in ticks:
        each.start()
    for each in ticks:
        each.join()
    assert sorted(Run.objects.values_list("schedule__name", flat=True)) == [
        f"number {number}" for number in range(4)
    ]


def test_a_crash_between_claim_and_start_loses_nothing(
    schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_due(schedule)
    fetch_now(schedule.benchmark.project)
    claim_schedules()
    run_fetches()

    def crash(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(schedules, "record_outcome", crash)
        with pytest.raises(SystemExit):
            claim_schedules()
    assert not Run.objects.exists(), "the run and the outcome are one transaction"
    claim_schedules()
    assert Run.objects.count() == 1
    claim_schedules()
    assert Run.objects.count() == 1


def test_a_schedule_waits_for_a_fetch_and_records_its_failure(
    schedule: Schedule, tmp_path: Path
) -> None:
    make_due(schedule)
    (tmp_path / "origin").rename(tmp_path / "away")
    claim_schedules()
    schedule.refresh_from_db()
    assert schedule.fetch_requested_at is not None
    assert schedule.next_at < utc_now(), "it stays due"
    for tried in range(TRIES_UNWATCHED):
        schedule.refresh_from_db()
        assert schedule.next_at < utc_now(), "one failed try loses no run"
        run_fetches()
        claim_schedules()
        if tried + 1 < TRIES_UNWATCHED:
            schedule.refresh_from_db()
            assert "the last attempt failed: git cannot read" in schedule.last_message
    schedule.refresh_from_db()
    assert "could not be fetched" in schedule.last_message
    assert schedule.next_at > utc_now()
    assert not Run.objects.exists()


def test_the_wait_message_is_cleared_when_the_repository_returns(
    following: Schedule, tmp_path: Path
) -> None:
    (tmp_path / "origin").rename(tmp_path / "away")
    make_due(following)
    claim_schedules()
    run_fetches()
    claim_schedules()
    following.refresh_from_db()
    waits = "waiting for a fetch of the repository; the last attempt"
    assert following.last_message.startswith(waits)
    (tmp_path / "away").rename(tmp_path / "origin")
    run_fetches()
    claim_schedules()
    following.refresh_from_db()
    assert (following.last_message, following.fetch_requested_at) == ("", None)


@pytest.fixture
def following_tags(personas: Personas, tmp_path: Path) -> Schedule:
    """A schedule of the tags v*, of which one exists."""
    project, _ = make_project(personas.alice, tmp_path / "origin")
    git(tmp_path / "origin", "tag", "v1")
    fetch_now(project)
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    new = NewSchedule(name="releases", tags="v*", benchmark="hello", hosts=("here",))
    return create_schedule(member=personas.alice, new=new)


def test_each_new_tag_is_measured_exactly_once(following_tags: Schedule, tmp_path: Path) -> None:
    start_due_runs(following_tags)
    assert not Run.objects.exists()

    sha = commit_files(tmp_path / "origin", {"file.txt": "new\n"}, 9)
    git(tmp_path / "origin", "tag", "-a", "-m", "two", "v2", at=900)
    git(tmp_path / "origin", "tag", "v2-again")
    git(tmp_path / "origin", "tag", "nightly")
    start_due_runs(following_tags)
    run = Run.objects.get()
    assert run.variants.last().commit.sha == sha
    assert (run.trigger, run.schedule) == ("schedule", following_tags)

    git(tmp_path / "origin", "tag", "--force", "v1", "main~1")
    start_due_runs(following_tags)
    start_due_runs(following_tags)
    assert Run.objects.count() == 1


def test_tags_created_while_a_schedule_is_off_are_skipped(
    following_tags: Schedule, personas: Personas, tmp_path: Path
) -> None:
    for enabled in (False, True):
        set_schedule_enabled(member=personas.alice, schedule_id=following_tags.pk, enabled=enabled)
    git(tmp_path / "origin", "tag", "v3", "main~1")
    start_due_runs(following_tags)
    assert not Run.objects.exists()
    git(tmp_path / "origin", "tag", "v4", "main~1")
    start_due_runs(following_tags)
    assert Run.objects.count() == 1


def test_a_schedule_of_tags_and_of_a_branch_is_refused(
    schedule: Schedule, personas: Personas
) -> None:
    both = replace(NIGHTLY, name="both", cron="", branch="main", tags="v*")
    with pytest.raises(InvalidRequestError) as refused:
        create_schedule(member=personas.alice, new=both)
    assert refused.value.field == "tags"
