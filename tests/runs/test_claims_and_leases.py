"""One worker advances a job at a time; one job holds a host at a time; nothing stays behind."""

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.runs import claims, leasing
from orchestrator.runs.cancelling import cancel_case, cancel_job, cancel_run, is_cancelled
from orchestrator.runs.models import HostLease, Job, Placement, Run, Trial
from orchestrator.runs.states import (
    JOB_ENDED,
    JOB_TRANSITIONS,
    JobState,
    RunState,
    derive_run_state,
)
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_personas,
    make_project,
    make_run,
)


@pytest.fixture
def job(personas: Personas, tmp_path: Path) -> Job:
    project, shas = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    run = make_run(personas.alice, shas[:2], rounds=1)
    make_run(personas.alice, shas[1:], rounds=1)
    return run.jobs.get()


def held(job: Job) -> Job:
    leasing.lease_queued_jobs()
    claimed_job = claims.claim_job(job.pk)
    assert claimed_job is not None
    return claimed_job


def test_a_host_is_leased_to_the_oldest_job(job: Job) -> None:
    assert leasing.lease_queued_jobs() == [job.pk]
    assert leasing.lease_queued_jobs() == []
    job.refresh_from_db()
    assert job.state == JobState.PREPARING
    assert job.run.state == RunState.RUNNING
    assert HostLease.objects.get().job == job


def test_each_job_is_reported_as_soon_as_it_has_its_host(job: Job, personas: Personas) -> None:
    """The leases of a large fleet take many seconds."""
    make_local_host(personas.alice, "second")
    shas = [variant.commit.sha for variant in job.run.variants.all()]
    make_run(personas.alice, shas, rounds=1, hosts=("second",))
    held: list[int] = []
    leased = leasing.lease_queued_jobs(lambda _: held.append(HostLease.objects.count()))
    assert (len(leased), held) == (2, [1, 2])


def test_one_worker_at_a_time_advances_a_job(job: Job) -> None:
    held(job)
    assert claims.claim_job(job.pk) is None
    assert claims.load_due_job_ids() == []


def test_an_expired_claim_passes_to_another_worker_and_fences_the_old_one(job: Job) -> None:
    dead = held(job)
    Job.objects.filter(pk=job.pk).update(claimed_until=utc_now() - timedelta(seconds=1))
    assert claims.load_due_job_ids() == [job.pk]
    successor = claims.claim_job(job.pk)
    assert successor is not None
    with pytest.raises(claims.JobClaimLost):
        claims.update_job(dead, phase="late")
    claims.update_job(successor, phase="in time")


def test_a_job_is_not_claimed_before_its_next_poll(job: Job) -> None:
    claims.release_claim(held(job), poll_in_s=60)
    assert claims.load_due_job_ids() == []
    assert claims.claim_job(job.pk) is None


def test_a_job_cancelled_during_a_claim_is_polled_immediately(personas: Personas, job: Job) -> None:
    mine = held(job)
    cancel_run(member=personas.alice, run_id=job.run_id)
    claims.release_claim(mine, poll_in_s=60)
    assert claims.load_due_job_ids() == [job.pk]


def test_an_ended_job_releases_claim_and_leases(job: Job) -> None:
    claims.end_job(held(job), JobState.FAILED, "the server did not start")
    job.refresh_from_db()
    run = Run.objects.get(pk=job.run_id)
    assert (job.state, job.claim, job.poll_at) == ("failed", None, None)
    assert (run.state, run.message) == ("failed", "the server did not start")
    assert run.ended_at is not None
    assert not HostLease.objects.filter(job=job).exists()
    assert set(Trial.objects.filter(job=job).values_list("state", flat=True)) == {"skipped"}
    # The host is free for the next one.
    assert len(leasing.lease_queued_jobs()) == 1


def test_leases_of_ended_jobs_are_removed(job: Job) -> None:
    held(job)
    Job.objects.filter(pk=job.pk).update(state=JobState.FAILED)
    assert leasing.release_stale_leases() == 1
    assert leasing.release_stale_leases() == 0


def test_undefined_transitions_are_refused(job: Job) -> None:
    mine = held(job)
    with pytest.raises(claims.JobClaimLost):
        claims.change_job_state(mine, JobState.FINISHED)
    for state in JOB_ENDED:
        assert not JOB_TRANSITIONS[state]


@pytest.mark.parametrize(
    ("jobs", "cancelled", "expected"),
    [
        (["queued", "queued"], False, "queued"),
        (["queued", "finished"], False, "running"),
        (["preparing"], False, "running"),
        (["finished", "finished"], False, "finished"),
        (["finished", "failed"], False, "failed"),
        (["no_data", "failed"], False, "failed"),
        (["no_data", "finished"], False, "finished"),
        (["no_data", "cancelled"], False, "no_data"),
        (["no_data"], False, "no_data"),
        (["no_data"], True, "cancelled"),
        (["cancelled", "finished"], True, "cancelled"),
    ],
)
def test_the_state_of_a_run_follows_from_its_jobs(
    jobs: list[str], cancelled: bool, expected: str
) -> None:
    assert derive_run_state([JobState(state) for state in jobs], cancelled=cancelled) == expected


@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_get_one_claim(tmp_path: Path) -> None:
    alice = make_personas().alice
    project, shas = make_project(alice, tmp_path / "origin")
    make_definition(alice, project)
    make_local_host(alice)
    job = make_run(alice, shas, rounds=1).jobs.get()
    start, leases, won = threading.Barrier(6), [], []

    def ask() -> None:
        start.wait()
        leases.extend(leasing.lease_queued_jobs())
        won.append(claims.claim_job(job.pk))
        connection.close()

    workers = [threading.Thread(target=ask) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert leases == [job.pk]
    assert len([turn for turn in won if turn is not None]) <= 1
    assert HostLease.objects.count() == 1


def test_a_free_host_goes_to_the_team_with_less_use(personas: Personas, tmp_path: Path) -> None:
    """Two teams with a host each, so that the order of leases shows the fairness."""
    for member in (personas.alice, personas.mallory):
        project, shas = make_project(member, tmp_path / member.team.slug)
        make_definition(member, project)
        make_local_host(member)
        make_run(member, shas[:2], rounds=1)
    red = Job.objects.get(run__team=personas.alice.team)
    hour_ago = utc_now() - timedelta(minutes=30)
    used = make_run(personas.alice, [red.run.variants.first().commit.sha, "main"], rounds=1)
    used.jobs.update(state="finished", started_at=hour_ago, ended_at=utc_now())
    blue = Job.objects.get(run__team=personas.mallory.team)
    assert leasing.lease_queued_jobs() == [blue.pk, red.pk]


def test_a_long_queue_of_one_team_does_not_hide_a_job_of_another(
    personas: Personas, tmp_path: Path
) -> None:
    """Blue has more old jobs of high priority than one pass reads; red's host has their tag."""
    blue, red = personas.mallory, personas.alice
    for member, name in ((blue, "theirs"), (red, "ours")):
        project, shas = make_project(member, tmp_path / name)
        make_definition(member, project)
        Host.objects.filter(pk=make_local_host(member, name=name).pk).update(tags=["linux"])
        wish = ({"target": "tag:linux"},)
        run = make_run(member, shas[:2], hosts=(), placements=wish, rounds=1, priority="high")
        run.jobs.update(created_at=utc_now() - timedelta(days=2 if member is blue else 0))
    wanted = Job.objects.get(run__team=blue.team)
    count = leasing.JOBS_PER_PAGE + 5
    jobs = Job.objects.bulk_create(
        Job(run=wanted.run, expected_s=wanted.expected_s, state=JobState.QUEUED)
        for _ in range(count)
    )
    Job.objects.filter(run=wanted.run).update(created_at=utc_now() - timedelta(days=2))
    HostLease.objects.create(host=Host.objects.get(name="theirs"), job=wanted)
    Placement.objects.bulk_create(
        Placement(job=job, role="target", wanted_tag="linux") for job in jobs
    )
    ours = Job.objects.get(run__team=red.team)
    assert leasing.lease_queued_jobs() == [ours.pk]
    # The window holds for each team: with all of them in one, red's job is not among the first.
    first = Job.objects.filter(state=JobState.QUEUED).order_by("created_at")[
        : leasing.JOBS_PER_PAGE
    ]
    assert {job.run_id for job in first} == {wanted.run_id}


def test_a_run_ends_when_its_last_waiting_case_is_cancelled(job: Job, personas: Personas) -> None:
    case = job.trials.values_list("case", flat=True)[0]
    run = cancel_case(member=personas.alice, run_id=job.run_id, case_id=case)
    job.refresh_from_db()
    assert (run.state, job.state) == (RunState.CANCELLED, JobState.CANCELLED)
    assert {(each.state, each.message) for each in job.trials.all()} == {
        ("skipped", "cancelled by alice")
    }


def test_a_cancelled_job_is_polled_immediately(job: Job, personas: Personas) -> None:
    mine = held(job)
    assert not is_cancelled(mine)
    cancel_job(member=personas.alice, run_id=job.run_id, job_id=job.pk)
    assert is_cancelled(mine)
    assert claims.release_claim(mine, poll_in_s=60) == 0.0
