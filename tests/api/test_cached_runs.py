"""A cached response of a run is the one that a process without a cache would make."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from orchestrator.core.clock import utc_now
from orchestrator.core.page_cache import forget_parts
from orchestrator.dispatch import builds
from orchestrator.dispatch.job_hosts import HostSession
from orchestrator.fleet.models import Host, HostState
from orchestrator.fleet.services import save_profile
from orchestrator.measurements.services import fail_trial
from orchestrator.retention.pruning import prune
from orchestrator.retention.settings import RetentionSettings, save_retention
from orchestrator.runs import claims, leasing
from orchestrator.runs.cancelling import cancel_case, cancel_job, cancel_run
from orchestrator.runs.models import Build, Job, Run, Trial
from orchestrator.runs.quiet_wait import end_quiet_waits
from orchestrator.runs.states import JobState
from orchestrator.runs.version_keys import read_run_version
from tests.api.conftest import ApiClient, make_client
from tests.support.factories import DEFINITION
from tests.support.waiting import wait_until
from tests.support.world import World

TWO_CASES = DEFINITION.replace("connections: [4]", "connections: [4, 8]")
#: Before the transaction of the test, whose time `now()` is.
NO_WAIT_S = -3600.0
BY_HOST, BY_TAG, BY_PROFILE = "host:here", "tag:fast", "profile:any"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A run that is queued again, after its only job had begun a build.

    `late` is the job as the worker of the first attempt has it, which has lost its claim.
    """

    world: World
    client: ApiClient
    run: Run
    late: Job

    @classmethod
    def make(cls, world: World, placement: str = BY_HOST) -> "Scene":
        Host.objects.update(tags=["fast"])
        run = world.queue_run(rounds=2, hosts=(), placements=({"target": placement},))
        held = _lease(run)
        late = copy.copy(held)
        _start_build(held)
        claims.requeue_job(held, "the host was lost", wait_s=NO_WAIT_S)
        return cls(world=world, client=make_client(world.alice), run=run, late=late)

    def show(self) -> Any:
        answer = self.client.get(f"runs/{self.run.pk}")
        assert answer.status_code == 200
        return answer.json()

    def show_fresh(self) -> Any:
        forget_parts()
        return self.show()

    def is_cached(self) -> bool:
        return read_run_version(self.world.alice, self.run.pk) is not None

    @property
    def trial(self) -> Trial:
        return Trial.objects.filter(job=self.late).order_by("position")[0]


@pytest.fixture
def two_cases(personas: Any, data_dir: Path, tmp_path: Path) -> World:
    return World.make(personas, tmp_path, source=TWO_CASES)


@pytest.fixture
def scene(two_cases: World) -> Scene:
    return Scene.make(two_cases)


def _lease(run: Run) -> Job:
    (pk,) = run.jobs.values_list("pk", flat=True)
    assert leasing.lease_queued_jobs() == [pk]
    job = claims.claim_job(pk)
    assert job is not None
    return job


def _session(job: Job) -> HostSession:
    """Without a connection: the build was in the cache of the host, so no log is read."""
    host: Any = job.host
    nothing: Any = None
    return HostSession(host, host.name, nothing, nothing)


def _event(job: Job, recipe: str = "aa", **more: Any) -> dict[str, Any]:
    sha = job.run.variants.get(position=0).commit.sha
    return {"commit": sha, "build": f"{sha}-{recipe}", **more}


def _start_build(job: Job) -> None:
    builds.record_build_start(job, _session(job), _event(job), utc_now())


def _cancel_case(scene: Scene) -> None:
    cancel_case(member=scene.world.alice, run_id=scene.run.pk, case_id=scene.trial.case_id)


def _cancel_job(scene: Scene) -> None:
    cancel_job(member=scene.world.alice, run_id=scene.run.pk, job_id=scene.late.pk)


def _end_quiet_waits(scene: Scene) -> None:
    end_quiet_waits(member=scene.world.alice, run_id=scene.run.pk)


def _cancel_run(scene: Scene) -> None:
    cancel_run(member=scene.world.alice, run_id=scene.run.pk)


def _lose_host_again(scene: Scene) -> None:
    claims.requeue_job(_lease(scene.run), "the host was lost again", wait_s=NO_WAIT_S)


def _end_job(scene: Scene) -> None:
    claims.end_job(_lease(scene.run), JobState.FAILED, "the server did not start")


def _retire_host(scene: Scene) -> None:
    Host.objects.update(state=HostState.RETIRED)
    assert claims.fail_jobs_on_retired_hosts() == 1


def _fail_late_trial(scene: Scene) -> None:
    assert fail_trial(trial=scene.trial, job=scene.late, code="timeout", message="", files={})


def _maintain_host(_: Scene) -> None:
    Host.objects.update(state=HostState.MAINTENANCE)


def _explain_maintenance(_: Scene) -> None:
    Host.objects.update(state=HostState.MAINTENANCE, message="a new disk")


def _lease_host_to_another_job(scene: Scene) -> None:
    _lease(scene.world.queue_run(priority="high"))


@pytest.mark.parametrize(
    "write",
    [
        _cancel_case,
        _cancel_job,
        _cancel_run,
        _end_quiet_waits,
        _lose_host_again,
        _end_job,
        _retire_host,
        _fail_late_trial,
        _maintain_host,
        _lease_host_to_another_job,
    ],
)
def test_a_write_shows_at_once_in_a_queued_run(
    write: Callable[[Scene], None], scene: Scene
) -> None:
    before = scene.show()
    assert scene.is_cached()
    assert scene.show() == before

    write(scene)

    assert scene.is_cached()
    after = scene.show()
    assert after != before
    assert after == scene.show_fresh()


def test_the_reason_of_a_maintenance_shows_at_once(scene: Scene) -> None:
    _maintain_host(scene)
    before = scene.show()
    _explain_maintenance(scene)
    after = scene.show()
    assert after != before
    assert after == scene.show_fresh()


@pytest.mark.parametrize("placement", [BY_TAG, BY_PROFILE])
def test_a_host_that_does_not_fit_any_more_shows_at_once(placement: str, two_cases: World) -> None:
    scene = Scene.make(two_cases, placement)
    before = scene.show()
    other = save_profile(member=two_cases.alice, slug="other", name="Another machine")
    Host.objects.update(**({"tags": []} if placement == BY_TAG else {"profile": other}))
    after = scene.show()
    assert after != before
    assert after == scene.show_fresh()


def test_a_run_is_not_cached_while_it_is_active_or_waits_for_a_time(scene: Scene) -> None:
    assert scene.is_cached()
    Host.objects.update(open_hours="Mon-Fri 8-18")
    assert not scene.is_cached()
    Host.objects.update(open_hours="")
    claims.requeue_job(_lease(scene.run), "the host was lost again", wait_s=60)
    assert not scene.is_cached()
    Job.objects.update(not_before=utc_now() - timedelta(hours=1))
    assert scene.is_cached()
    _lease(scene.run)
    assert not scene.is_cached()


def test_a_late_worker_changes_no_build(scene: Scene) -> None:
    before = scene.show()
    session, now = _session(scene.late), utc_now()
    with pytest.raises(claims.JobClaimLost):
        builds.record_build_start(scene.late, session, _event(scene.late, "bb"), now)
    with pytest.raises(claims.JobClaimLost):
        builds.record_build_done(scene.late, session, _event(scene.late, cached=True), now)
    assert Build.objects.get().state == "building"
    assert scene.show() == before == scene.show_fresh()


def test_removed_trials_show_at_once(two_cases: World) -> None:
    alice = make_client(two_cases.alice)
    run = two_cases.measure_run(1000, 900)
    two_cases.measure_run(1000, 900)
    Run.objects.filter(pk=run.pk).update(ended_at=utc_now() - timedelta(days=40))
    before = alice.get(f"runs/{run.pk}").json()
    wanted = RetentionSettings(
        files_days=1, distributions_days=1, trials_days=1, points_days=None, keep_every=None
    )
    save_retention(member=two_cases.alice, project=two_cases.project, wanted=wanted)

    prune(two_cases.project, utc_now())

    after = alice.get(f"runs/{run.pk}").json()
    assert (before["trials_total"], after["trials_total"]) == (20, 0)
    forget_parts()
    assert after == alice.get(f"runs/{run.pk}").json()


def test_each_write_of_a_worker_advances_the_revision(scene: Scene) -> None:
    revisions = [_revision(scene)]
    job = _lease(scene.run)
    revisions.append(_revision(scene))
    for write in (
        lambda: claims.mark_unsupported(job, {}),
        lambda: claims.skip_case(job, scene.trial.case_id, "it failed"),
        lambda: claims.store_analyses(job, []),
        lambda: claims.skip_remaining(job, "budget spent"),
        lambda: builds.record_build_start(job, _session(job), _event(job, "bb"), utc_now()),
        lambda: builds.record_build_done(job, _session(job), _event(job, cached=True), utc_now()),
        lambda: claims.end_job(job, JobState.FAILED, "the server did not start"),
    ):
        write()
        revisions.append(_revision(scene))
    assert revisions == sorted(set(revisions))


def _revision(scene: Scene) -> int:
    return Job.objects.get(pk=scene.late.pk).revision


def test_a_write_that_is_rolled_back_leaves_nothing(scene: Scene) -> None:
    before = scene.show()
    with transaction.atomic():
        _fail_late_trial(scene)
        inside = scene.show()
        transaction.set_rollback(True)

    assert inside != before
    assert scene.show() == before == scene.show_fresh()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("end", [False, True])
def test_a_worker_locks_the_job_before_its_trials(end: bool, two_cases: World) -> None:
    """A cancellation does so as well, so that neither waits for the other one."""
    run = two_cases.queue_run(rounds=2)
    job = _lease(run)
    trial = job.trials.order_by("position")[0]

    def work() -> None:
        try:
            if end:
                claims.end_job(job, JobState.FAILED, "the server did not start")
            else:
                fail_trial(trial=trial, job=job, code="timeout", message="", files={})
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Job.objects.select_for_update().get(pk=job.pk)
            worker = pool.submit(work)
            wait_until(_is_awaited)
            cancel_case(member=two_cases.alice, run_id=run.pk, case_id=trial.case_id)
        worker.result(60)
    trial.refresh_from_db()
    assert (trial.state, trial.message) == ("skipped", "cancelled by alice")


def _is_awaited() -> bool:
    """Return whether another connection waits for a lock of this one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted "
            "AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])
