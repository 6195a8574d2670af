"""Projects and benchmarks are deleted, restored for some days, and removed afterwards."""

from datetime import timedelta

import pytest
from django.db import transaction

from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.benchmarks.fetching import run_next_fetch
from orchestrator.benchmarks.models import Benchmark, Commit, Definition, Fetch, Project
from orchestrator.benchmarks.projects import create_project, fetch_now
from orchestrator.benchmarks.refs import get_mirror_path
from orchestrator.benchmarks.selectors import load_benchmark, load_benchmarks, load_projects
from orchestrator.benchmarks.tidying import remove_unused_mirrors
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, NotFoundError, PermissionRefusedError
from orchestrator.measurements.version_keys import read_runs_version
from orchestrator.results.models import Point, Reading, Series
from orchestrator.retention import deletions
from orchestrator.retention.deletions import (
    DAYS_TO_RESTORE,
    delete_benchmark,
    delete_project,
    list_benchmark_dependents,
    list_project_dependents,
    load_deleted_benchmarks,
    load_deleted_projects,
    remove_deleted,
    restore_benchmark,
    restore_project,
)
from orchestrator.runs.cancelling import is_cancelled
from orchestrator.runs.claims import end_job
from orchestrator.runs.golden import NewGolden, load_due_golden_checks, set_golden
from orchestrator.runs.models import GoldenCheck, Run, Schedule
from orchestrator.runs.schedules import lock_due
from orchestrator.runs.selectors import load_jobs, load_run, load_runs, load_schedules
from orchestrator.runs.states import JobState
from tests.support.factories import add_member, make_definition, make_nightly_schedule
from tests.support.world import World

LATER = timedelta(days=DAYS_TO_RESTORE, hours=2)


@pytest.fixture
def world(world: World) -> World:
    """With a measured run, a schedule and a golden run."""
    world.run = world.measure_run(1000, 1001)
    make_nightly_schedule(world.alice)
    golden = NewGolden(benchmark="hello", commit="main", every_hours=1)
    set_golden(member=world.alice, host_id=world.host.pk, new=golden)
    return world


def _delete(world: World) -> Benchmark:
    return delete_benchmark(member=world.alice, project="server", slug="hello")


def _count_seen(world: World) -> list[int]:
    member = world.alice
    rows = (load_benchmarks(member), load_runs(member), load_schedules(member))
    return [*(each.count() for each in rows), load_jobs(world.host).count()]


def test_dependents_are_counted_and_named(world: World) -> None:
    of_benchmark = {each.title: each for each in list_benchmark_dependents(world.benchmark)}
    assert of_benchmark["Runs"].count == 1
    assert of_benchmark["Histories"].count == Series.objects.count() > 0
    assert of_benchmark["Points of histories"].count == Point.objects.count()
    assert of_benchmark["Schedules"].names == ("nightly",)
    assert of_benchmark["Golden runs of hosts"].names == ("here",)
    assert "Unfinished runs" not in of_benchmark
    of_project = list_project_dependents(world.alice, world.project)
    assert [each.names for each in of_project if each.title == "Benchmarks"] == [("hello",)]


def test_points_are_counted_to_a_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "MOST_COUNTED", 1)
    dependents = list_benchmark_dependents(world.benchmark)
    points = next(each for each in dependents if each.title == "Points of histories")
    assert (points.count, points.is_capped) == (1, True)


def test_a_deleted_benchmark_vanishes_and_its_runs_are_cancelled(world: World) -> None:
    queued = world.queue_run()
    Schedule.objects.update(next_at=utc_now() - timedelta(minutes=1))
    assert _count_seen(world) == [1, 2, 1, 2]
    assert lock_due_now() is not None
    assert load_due_golden_checks(utc_now())

    _delete(world)

    assert _count_seen(world) == [0, 0, 0, 0]
    assert lock_due_now() is None
    assert load_due_golden_checks(utc_now()) == []
    queued.refresh_from_db()
    assert (queued.state, queued.jobs.get().state) == ("cancelled", "cancelled")
    assert queued.message == "cancelled, because the benchmark was deleted"
    for load in (
        lambda: load_benchmark(world.alice, "hello"),
        lambda: load_run(world.alice, world.run.pk),
        lambda: world.queue_run(),
        lambda: _delete(world),
    ):
        with pytest.raises(NotFoundError):
            load()
    assert AuditEntry.objects.filter(action="benchmark.deleted").exists()
    assert Point.objects.exists(), "the results can be restored"


def test_an_active_run_stops_at_the_next_poll_and_has_the_reason(world: World) -> None:
    active = world.queue_run()
    active.jobs.update(state="measuring", poll_at=utc_now() + timedelta(minutes=5))
    Run.objects.filter(pk=active.pk).update(state="running")

    gone = delete_project(member=world.alice, slug="server")

    active.refresh_from_db()
    assert (active.state, is_cancelled(active.jobs.get())) == ("running", True)
    assert active.jobs.get().poll_at <= utc_now()
    end_job(active.jobs.get(), JobState.CANCELLED, "cancelled in round 2")
    restore_project(member=world.alice, project_id=gone.pk)
    ended = load_run(world.alice, active.pk)
    assert ended.state == "cancelled"
    assert ended.message == "cancelled, because the benchmark was deleted\ncancelled in round 2"


def lock_due_now() -> Schedule | None:
    with transaction.atomic():
        return lock_due(now=utc_now())


def test_a_benchmark_is_restored_with_everything(world: World) -> None:
    before = _count_seen(world)
    gone = _delete(world)
    assert [each.pk for each in load_deleted_benchmarks(world.alice)] == [gone.pk]

    restored = restore_benchmark(member=world.alice, benchmark_id=gone.pk)

    assert (restored.deleted_at, restored.deleted_by) == (None, None)
    assert _count_seen(world) == before
    assert not load_deleted_benchmarks(world.alice).exists()
    with pytest.raises(NotFoundError):
        restore_benchmark(member=world.alice, benchmark_id=gone.pk)


def test_a_project_takes_its_benchmarks_with_it_and_brings_them_back(world: World) -> None:
    made = make_definition(world.alice, world.project, slug="former")
    former = delete_benchmark(member=world.alice, project="server", slug=made.benchmark.slug)

    gone = delete_project(member=world.alice, slug="server")

    assert _count_seen(world) == [0, 0, 0, 0]
    assert not load_projects(world.alice).exists()
    assert not load_deleted_benchmarks(world.alice).exists(), "they return with the project"
    assert Fetch.objects.get().next_at is None
    restore_project(member=world.alice, project_id=gone.pk)
    assert Fetch.objects.get().state == "queued"
    assert _count_seen(world) == [1, 1, 1, 1]
    assert [each.pk for each in load_deleted_benchmarks(world.alice)] == [former.pk]


def test_the_short_name_is_free_again_and_then_prevents_the_restoration(world: World) -> None:
    benchmark = _delete(world)
    make_definition(world.alice, world.project)
    with pytest.raises(ConflictError, match="another benchmark hello now"):
        restore_benchmark(member=world.alice, benchmark_id=benchmark.pk)
    project = delete_project(member=world.alice, slug="server")
    url = world.project.repository_url
    create_project(member=world.alice, slug="server", name="", repository_url=url)
    with pytest.raises(ConflictError, match="another project server now"):
        restore_project(member=world.alice, project_id=project.pk)


def test_only_maintainers_of_the_team_delete_and_restore(world: World) -> None:
    member = add_member(world.alice, "dora", Role.MEMBER)
    for each in (member, world.personas.bob):
        with pytest.raises(PermissionRefusedError):
            delete_project(member=each, slug="server")
        with pytest.raises(PermissionRefusedError):
            delete_benchmark(member=each, project="server", slug="hello")
    with pytest.raises(NotFoundError):
        delete_project(member=world.personas.mallory, slug="server")
    benchmark, project = _delete(world), delete_project(member=world.alice, slug="server")
    for each, error in ((member, PermissionRefusedError), (world.personas.mallory, NotFoundError)):
        with pytest.raises(error):
            restore_project(member=each, project_id=project.pk)
        with pytest.raises(error):
            restore_benchmark(member=each, benchmark_id=benchmark.pk)
    assert not load_deleted_projects(world.personas.mallory).exists()


def test_cached_lists_of_runs_change(world: World) -> None:
    Run.objects.update(ended_at=utc_now() - timedelta(hours=2))
    before = read_runs_version(world.alice, count=20)
    assert before is not None
    _delete(world)
    assert read_runs_version(world.alice, count=20) != before


def test_nothing_is_removed_before_its_time(world: World) -> None:
    gone = delete_project(member=world.alice, slug="server")
    fetch_now(member=world.alice, project=gone)
    assert run_next_fetch() is None, "a deleted project is not fetched"
    remove_unused_mirrors()
    assert get_mirror_path(gone).exists()
    remove_deleted(utc_now() + timedelta(days=DAYS_TO_RESTORE - 1))
    assert Run.objects.filter(pk=world.run.pk).exists()
    restore_project(member=world.alice, project_id=gone.pk)


def test_a_project_is_removed_with_all_rows_after_its_time(world: World) -> None:
    other = world.add_project()
    mirror = get_mirror_path(world.project)
    gone = delete_project(member=world.alice, slug="server")

    for _ in range(3):
        remove_deleted(utc_now() + LATER)

    assert not Project.with_deleted.filter(pk=gone.pk).exists()
    assert not mirror.exists()
    for model in (Run, Series, Point, Reading, Benchmark, Definition, Schedule, GoldenCheck):
        assert not model._base_manager.exists(), model
    assert {each.project_id for each in Commit.objects.all()} <= {other.pk}
    assert AuditEntry.objects.filter(action="project.removed", subject="server").exists()
    with pytest.raises(NotFoundError):
        restore_project(member=world.alice, project_id=gone.pk)


def test_the_removal_continues_where_it_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "STEPS", 1)
    _delete(world)
    steps = 1 + world.benchmark.cases.count() + 1

    for _ in range(steps):
        assert Benchmark.with_deleted.filter(slug="hello").exists()
        remove_deleted(utc_now() + LATER)

    assert not Benchmark.with_deleted.filter(slug="hello").exists()
    assert Project.objects.filter(slug="server").exists()
    assert Commit.objects.exists(), "other benchmarks share them"


def test_a_run_that_was_created_meanwhile_is_cancelled(world: World) -> None:
    queued = world.queue_run()
    # As if its transaction ended after that of the deletion.
    Benchmark.objects.filter(pk=world.benchmark.pk).update(deleted_at=utc_now())
    remove_deleted(utc_now())
    queued.refresh_from_db()
    assert queued.state == "cancelled"
