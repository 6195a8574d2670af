"""A job ends, whatever its host says."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models.functions import Now

from orchestrator.dispatch import deadlines, engine
from orchestrator.fleet.connect import get_local_work_dir
from orchestrator.fleet.models import Host
from orchestrator.runs.models import HostLease, Job
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, Personas
from tests.support.hostile_host import answer, job_on_hostile_host, launcher, read_calls, status


@pytest.fixture
def job(personas: Personas, tmp_path: Path, data_dir: Path) -> Job:
    return job_on_hostile_host(personas, tmp_path)


def poll(job: Job) -> Job:
    Job.objects.filter(pk=job.pk).update(poll_at=Now(), claim=None, claimed_until=None)
    engine.advance(job.pk)
    return Job.objects.select_related("host").get(pk=job.pk)


def test_a_job_that_holds_its_hosts_too_long_ends_with_the_reason(job: Job) -> None:
    leases = HostLease.objects.filter(job=job)
    limit_s = deadlines.SLOWNESS * job.expected_s + deadlines.ALLOWANCE_S
    leases.update(taken_at=Now() - timedelta(seconds=limit_s - 60))
    assert poll(job).state == "measuring"
    leases.update(taken_at=Now() - timedelta(seconds=limit_s + 60))
    job = poll(job)
    assert job.state == "failed"
    assert "the job has held its hosts for 2." in job.message
    assert not leases.exists()
    assert any(call.startswith("begin stop") for call in read_calls(job))


def test_a_round_that_stands_still_is_stopped_and_its_host_quarantined(job: Job) -> None:
    answer(job, status=status(beat_age_s=deadlines.STUCK_S - 1))
    assert poll(job).attempt == 1
    answer(job, status=status(beat_age_s=deadlines.STUCK_S + 60))
    job = poll(job)
    assert (job.state, job.attempt) == ("queued", 2)
    assert "has not got further for 31 min" in job.message
    assert job.host is not None
    assert job.host.state == "quarantined"
    assert "restart it, and activate it again" in job.host.message
    assert any(call.startswith("begin stop") for call in read_calls(job))
    assert not HostLease.objects.exists()


def test_a_host_with_an_unkillable_process_is_quarantined(job: Job) -> None:
    reason = "server does not end: process 7 (node, state D) still exists"
    answer(job, {"event": "aborted", "code": "unkillable", "reason": reason})
    job = poll(job)
    assert (job.state, job.attempt) == ("queued", 2)
    assert job.host is not None
    assert job.host.state == "quarantined"
    assert reason in job.host.message


def test_a_lost_follower_that_cannot_be_stopped_is_quarantined(
    personas: Personas, tmp_path: Path, data_dir: Path
) -> None:
    job = leased(personas, tmp_path, DEFINITION)
    Host.objects.update(python=f"{launcher(tmp_path)}")
    lost = status([{"event": "aborted", "code": "peer_lost", "reason": "lost host a"}], alive=False)
    reason = "the agent does not end: process 7 (python3, state D) still exists"
    for name, answers in (("one", {"stop": {"unkillable": reason}}), ("two", {"status": lost})):
        folder = get_local_work_dir(Host.objects.get(name=name))
        folder.mkdir(parents=True)
        lies = {verb: json.dumps(each) for verb, each in answers.items()}
        (folder / "hostile.json").write_text(json.dumps(lies))
    Job.objects.update(state="measuring", followers_started=True, step_started=True)
    job = poll(job)
    # An interruption, after which the job waits for another host.
    assert (job.state, job.attempt, job.interruptions) == ("queued", 1, 1)
    follower, lead = Host.objects.order_by("name")
    assert (follower.state, lead.state) == ("quarantined", "ready")
    assert reason in follower.message


def test_a_job_whose_files_exceed_the_disk_limit_fails_at_once(job: Job) -> None:
    reason = "the files of this job take 12.0 GiB"
    answer(job, {"event": "aborted", "code": "disk_limit", "reason": reason})
    job = poll(job)
    assert (job.state, job.attempt) == ("failed", 1)
    assert reason in job.message


@pytest.mark.parametrize(
    ("phase", "idle_s", "wait_s"),
    [
        ("building c0ffee", 0.1, 0.5),
        ("building c0ffee", 20.0, 2.0),
        ("building c0ffee", 900.0, 5.0),
        ("measuring", 900.0, 1.0),
    ],
)
def test_polls_of_a_host_without_news_become_rarer(
    job: Job, phase: str, idle_s: float, wait_s: float
) -> None:
    Job.objects.filter(pk=job.pk).update(phase=phase)
    answer(job, status=status(idle_s=idle_s))
    job = poll(job)
    due = Job.objects.filter(pk=job.pk, poll_at__gt=Now() + timedelta(seconds=wait_s - 0.4))
    assert due.exists()
    assert not due.filter(poll_at__gt=Now() + timedelta(seconds=wait_s)).exists()
