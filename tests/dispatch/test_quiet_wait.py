"""The engine while a trial waits for a quiet host, and after a trial."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from orchestrator.core.clock import utc_now
from orchestrator.database.shared_redis import build_redis_key, connect_redis
from orchestrator.dispatch import engine
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.local_loads import MOST_S, announce_local_load, read_local_load_s
from orchestrator.dispatch.rounds import build_round_plans
from orchestrator.fleet.models import Host
from orchestrator.runs import leasing, step_rounds
from orchestrator.runs.models import HostLease, Job, Run, Trial
from orchestrator.runs.quiet_wait import WAITING_PHASE, describe_pause, end_quiet_waits
from orchestrator.runs.states import JobState
from tests.support.factories import Personas
from tests.support.hostile_host import answer, get_work_dir, job_on_hostile_host

BUSY = {
    "event": "host_busy",
    "host": "a",
    "busy_share": 0.62,
    "foreign": [{"name": "chromium", "cpu_s": 0.2}],
    "quiet_s": 60.0,
}


@pytest.fixture
def job(personas: Personas, tmp_path: Path, data_dir: Path) -> Job:
    return job_on_hostile_host(personas, tmp_path)


@pytest.fixture(autouse=True)
def _waits(settings: Any) -> None:
    """Other tests never wait."""
    settings.QUIET_WAIT_S = 60


@pytest.fixture(autouse=True)
def _without_local_load(data_dir: Path) -> None:
    connect_redis().delete(build_redis_key("local-load"))


def poll(job: Job, *events: dict[str, Any]) -> tuple[Job, float | None]:
    """Poll the host, which reports these events; return the job and the wait until the next."""
    trial = str(job.trials.first().pk)
    answer(job, *({"trial": trial, **event} for event in events))
    Job.objects.filter(pk=job.pk).update(poll_at=Now(), claim=None, claimed_until=None)
    wait_s = engine.advance(job.pk).wait_s
    return Job.objects.get(pk=job.pk), wait_s


def test_reason_of_a_wait_is_shown_until_the_next_phase(job: Job) -> None:
    waiting, wait_s = poll(job, BUSY)
    assert waiting.phase == WAITING_PHASE
    assert f"{job.host.name} is busy: other processes use 62 % of its CPUs" in waiting.message
    assert wait_s
    assert 30 < wait_s <= 60
    assert poll(job)[0].message == waiting.message
    started, _ = poll(job, {"event": "phase", "phase": "starting", "quiet_s": 0.0})
    assert (started.phase, started.message) == ("starting", "")


@pytest.mark.parametrize(
    "wrong",
    [{"foreign": "chromium"}, {"foreign": [{"name": 1, "cpu_s": 1}]}, {"busy_share": -1},
     {"foreign": [{"name": "x", "cpu_s": 0.1}] * 1000}],
)  # fmt: skip
def test_wrong_reasons_of_a_wait_are_refused(job: Job, wrong: dict[str, Any]) -> None:
    refused, _ = poll(job, {**BUSY, **wrong})
    assert refused.failures == 1
    assert "the agent's answer to status is not valid" in refused.message


def test_agent_is_asked_to_measure_now(job: Job) -> None:
    file = get_work_dir(job) / "jobs" / str(job.pk) / "a1-r1" / "measure_now"
    poll(job, BUSY)
    assert not file.exists()
    Run.objects.filter(pk=job.run_id).update(wait_for_quiet=False)
    poll(job, BUSY)
    assert file.exists()


@pytest.mark.parametrize(("waits", "wait_s"), [(True, 60.0), (False, 0.0)])
def test_plan_contains_the_limits_of_the_wait(job: Job, waits: bool, wait_s: float) -> None:
    job.run.wait_for_quiet = waits
    (plan,) = build_round_plans(job, JobHosts(job), {}).values()
    assert json.loads(plan)["quiet"] == {"busy_share": 0.10, "wait_s": wait_s}


def test_job_remembers_whether_its_host_was_shared(
    personas: Personas, tmp_path: Path, data_dir: Path
) -> None:
    job = job_on_hostile_host(personas, tmp_path)
    assert not job.shared_hosts
    Host.objects.update(is_shared=True)
    job.refresh_from_db()
    assert not job.shared_hosts
    Job.objects.filter(pk=job.pk).update(state=JobState.QUEUED)
    leasing.release(job)
    leasing.lease_queued_jobs()
    job.refresh_from_db()
    assert job.shared_hosts


def test_trials_do_not_wait_on_a_shared_host(job: Job) -> None:
    job.shared_hosts = True
    (plan,) = build_round_plans(job, JobHosts(job), {}).values()
    assert json.loads(plan)["quiet"]["wait_s"] == 0


def test_ticks_pause_while_a_load_runs_on_this_machine(job: Job) -> None:
    poll(job, BUSY)
    assert read_local_load_s() == 0
    poll(job, {"event": "phase", "phase": "measuring", "quiet_s": 25.0})
    assert 5 < read_local_load_s() <= 25


def test_pause_of_the_ticks_is_limited() -> None:
    announce_local_load(3600.0)
    assert MOST_S - 2 < read_local_load_s() <= MOST_S


def measure_round(
    job: Job, number: int, *validities: str, reason: str = "busy_neighbour: x"
) -> None:
    """Store a measured trial for each variant of the only case."""
    for trial, validity in zip(job.trials.filter(round=number), validities, strict=True):
        reasons = [] if validity == "valid" else [reason]
        Trial.objects.filter(pk=trial.pk).update(
            state="measured", validity=validity, reasons=reasons
        )


@pytest.fixture
def measured_job(
    personas: Personas, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Job:
    """A job in the middle of the second of three rounds, each with a separate plan."""
    monkeypatch.setattr(step_rounds, "LONGEST_S", 0.0)
    return job_on_hostile_host(personas, tmp_path, rounds=3, current=2)


def finish_round(job: Job) -> Job:
    return poll(job, {"event": "round_done"})[0]


def test_job_pauses_after_two_disturbed_rounds(measured_job: Job) -> None:
    measure_round(measured_job, 1, "invalid", "valid")
    measure_round(measured_job, 2, "valid", "invalid")
    paused = finish_round(measured_job)
    assert (paused.state, paused.phase, paused.pauses) == ("queued", "paused", 1)
    assert (paused.attempt, paused.failures) == (1, 0)
    assert "the last 2 rounds have no usable block" in paused.message
    assert 500 < (paused.not_before - utc_now()).total_seconds() <= 600
    assert not HostLease.objects.filter(job=paused).exists()


@pytest.fixture
def job_of_a_common_plan(
    personas: Personas, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Job:
    """A job of five rounds, whose current plan has the rounds 2 to 4."""
    job = job_on_hostile_host(personas, tmp_path, rounds=5, current=2)
    round_s = sum(job.trials.filter(round=2).values_list("expected_s", flat=True))
    monkeypatch.setattr(step_rounds, "LONGEST_S", 3.5 * round_s)
    return job


def test_a_job_pauses_after_the_last_rounds_of_a_common_plan(job_of_a_common_plan: Job) -> None:
    job = job_of_a_common_plan
    measure_round(job, 1, "valid", "valid")
    measure_round(job, 2, "valid", "valid")
    measure_round(job, 3, "invalid", "invalid")
    measure_round(job, 4, "invalid", "invalid")
    paused = finish_round(job)
    assert (paused.phase, paused.pauses) == ("paused", 1)
    assert "the last 2 rounds have no usable block" in paused.message


def test_a_trial_that_was_skipped_in_a_common_plan_is_tried_again(
    job_of_a_common_plan: Job,
) -> None:
    job = job_of_a_common_plan
    for number in (1, 2, 3):
        measure_round(job, number, "valid", "valid")
    again = finish_round(job)
    assert (again.state, again.attempt) == ("queued", 2)
    assert "it skipped trials of its round" in again.message


def test_job_on_a_shared_host_does_not_pause(measured_job: Job) -> None:
    Job.objects.filter(pk=measured_job.pk).update(shared_hosts=True)
    measure_round(measured_job, 1, "invalid", "invalid")
    measure_round(measured_job, 2, "invalid", "invalid")
    assert finish_round(measured_job).state == "measuring"


def test_member_continues_a_paused_job(measured_job: Job, personas: Personas) -> None:
    measure_round(measured_job, 1, "invalid", "invalid")
    measure_round(measured_job, 2, "invalid", "invalid")
    paused = finish_round(measured_job)
    assert leasing.lease_queued_jobs() == []
    end_quiet_waits(member=personas.alice, run_id=paused.run_id)
    assert leasing.lease_queued_jobs() == [paused.pk]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (("valid", "suspect"), ("invalid", "invalid"), "busy_neighbour: x"),
        (("invalid", "invalid"), ("valid", "valid"), "busy_neighbour: x"),
        (("invalid", "invalid"), ("invalid", "invalid"), "http_errors: the server fails"),
    ],
)
def test_job_does_not_pause_otherwise(
    measured_job: Job, first: tuple[str, ...], second: tuple[str, ...], reason: str
) -> None:
    measure_round(measured_job, 1, *first, reason=reason)
    measure_round(measured_job, 2, *second, reason=reason)
    assert describe_pause(measured_job) == ""


def test_job_pauses_at_most_three_times(measured_job: Job) -> None:
    for number in (1, 2):
        measure_round(measured_job, number, "invalid", "invalid")
    assert describe_pause(measured_job)
    measured_job.pauses = 3
    assert describe_pause(measured_job) == ""
    measured_job.pauses = 0
    measured_job.run.wait_for_quiet = False
    assert describe_pause(measured_job) == ""
