"""A job whose host failed goes back to the queue, and to another host where it may."""

from pathlib import Path

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import Host
from orchestrator.runs import claims, leasing
from orchestrator.runs.models import HostLease, Job
from orchestrator.runs.states import JobState
from orchestrator.runs.wait_reasons import describe_wait
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)


@pytest.fixture
def shas(personas: Personas, tmp_path: Path) -> list[str]:
    project, shas = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project)
    for name in ("one", "two"):
        make_local_host(personas.alice, name)
    Host.objects.update(data_address="127.0.0.1", tags=["fast"])
    return shas


def lost(job: Job) -> Job:
    """The job, leased, then put back since its host failed."""
    leasing.lease_queued_jobs()
    held = claims.claim_job(job.pk)
    assert held is not None
    claims.requeue_job(held, "it is gone", wait_s=0, avoid=[held.host_id])
    job.refresh_from_db()
    return job


def lease_host(job: Job) -> str | None:
    leasing.lease_queued_jobs()
    job.refresh_from_db()
    return job.host.name if job.host else None


def any_host(personas: Personas, shas: list[str], wanted: str = "profile:any") -> Job:
    return make_run(personas.alice, shas[:2], rounds=1, hosts=(wanted,)).jobs.get()


@pytest.mark.parametrize("wanted", ["profile:any", "tag:fast"])
def test_a_retry_uses_another_host_of_the_profile(
    personas: Personas, shas: list[str], wanted: str
) -> None:
    job = lost(any_host(personas, shas, wanted))
    assert (job.state, job.attempt, job.host, job.message) == ("queued", 2, None, "it is gone")
    assert not HostLease.objects.exists()
    assert lease_host(job) == "two"
    assert job.run.state == "running"


def test_a_retry_starts_again_with_the_first_host_when_all_failed(
    personas: Personas, shas: list[str]
) -> None:
    job = lost(lost(any_host(personas, shas)))
    assert job.attempt == 3
    assert lease_host(job) == "one"


def test_a_retry_stays_on_a_named_host(personas: Personas, shas: list[str]) -> None:
    job = lost(any_host(personas, shas, "one"))
    assert lease_host(job) == "one"


def test_a_retry_waits_before_it_is_leased_again(personas: Personas, shas: list[str]) -> None:
    job = any_host(personas, shas)
    leasing.lease_queued_jobs()
    held = claims.claim_job(job.pk)
    assert held is not None
    claims.requeue_job(held, "gone", wait_s=60)
    assert lease_host(job) is None
    assert "tried again in" in describe_wait(job)


def test_a_job_does_not_wait_for_its_own_lease(personas: Personas, shas: list[str]) -> None:
    read_before = any_host(personas, shas, "one")
    assert leasing.lease_queued_jobs() == [read_before.pk]
    assert describe_wait(read_before) == "in the queue of its hosts"


def test_all_hosts_of_a_job_are_leased_or_none(personas: Personas, shas: list[str]) -> None:
    busy = any_host(personas, shas, "one")
    two = make_run(
        personas.alice, shas[1:], placements=({"target": "two", "generator": "host:one"},), hosts=()
    ).jobs.get()
    assert leasing.lease_queued_jobs() == [busy.pk]
    assert HostLease.objects.count() == 1
    assert "busy" in describe_wait(two)
    held = claims.claim_job(busy.pk)
    assert held is not None
    claims.end_job(held, JobState.FAILED, "")
    assert leasing.lease_queued_jobs() == [two.pk]
    assert HostLease.objects.filter(job=two).count() == 2
    assert {place.role: place.host.name for place in two.placements.all() if place.host} == {
        "target": "two",
        "generator": "one",
    }


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"hosts": ("profile:none",)}, "no hardware profile none"),
        ({"hosts": ("tag:slow",)}, "no host of tag:slow"),
        ({"hosts": ("cloud:x",)}, "expected a host's name"),
        ({"hosts": (), "placements": ({"generator": "one"},)}, "target"),
        ({"hosts": (), "placements": ({"target": "one", "backend": "two"},)}, "no role 'backend'"),
        ({"priority": "urgent", "hosts": ("one",)}, "low, normal, high"),
    ],
)
def test_an_impossible_placement_is_refused(
    personas: Personas, shas: list[str], request_: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        make_run(personas.alice, shas[:2], **request_)


def test_hosts_that_communicate_need_an_address(personas: Personas, shas: list[str]) -> None:
    Host.objects.filter(name="two").update(data_address="")
    with pytest.raises(InvalidRequestError, match="two has no address"):
        make_run(
            personas.alice, shas, hosts=(), placements=({"target": "one", "generator": "two"},)
        )


def test_the_parent_is_the_default_baseline(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, ["", shas[2]], hosts=("one",))
    assert [variant.commit.sha for variant in run.variants.all()] == [shas[1], shas[2]]


def test_a_long_run_is_split_into_jobs_of_minutes(personas: Personas, shas: list[str]) -> None:
    source = (
        "version: 1\ntitle: Long\nsubject: {start: [x, '{port}']}\n"
        "load: {connections: '{c}', duration_s: 58, warmup_s: 0}\n"
        "matrix: {c: [1, 2, 3]}\ncooldown_s: 1\n"
    )
    project = personas.alice.team.projects.get()
    make_definition(personas.alice, project, slug="long", source=source)
    run = make_run(personas.alice, shas[:2], benchmark="long", rounds=3, hosts=("one",))
    jobs = list(run.jobs.order_by("created_at"))
    assert [job.expected_s for job in jobs] == [360.0, 360.0, 360.0]
    assert [job.trials.count() for job in jobs] == [6, 6, 6]
    assert {trial.case_id for trial in jobs[0].trials.all()}.isdisjoint(
        trial.case_id for trial in jobs[1].trials.all()
    )


def test_a_job_that_waits_for_a_retired_host_ends(personas: Personas, shas: list[str]) -> None:
    waiting, other = any_host(personas, shas, "one"), any_host(personas, shas, "two")
    Host.objects.filter(name="one").update(state="retired")
    assert claims.fail_jobs_on_retired_hosts() == 1
    waiting.refresh_from_db()
    other.refresh_from_db()
    assert (waiting.state, waiting.run.state, other.state) == ("failed", "failed", "queued")
    assert "one was retired" in waiting.message
    assert set(waiting.trials.values_list("state", flat=True)) == {"skipped"}
