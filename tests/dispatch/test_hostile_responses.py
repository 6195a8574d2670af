"""A host says anything: what it says is taken in within bounds, or fails its own trial or job."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from orchestrator.core.heartbeat import Claim
from orchestrator.dispatch import builds, engine, trial_files
from orchestrator.dispatch.attempts import MAX_INTERRUPTIONS
from orchestrator.dispatch.intake import MOST_QUIET_S
from orchestrator.dispatch.plan import MAX_ATTEMPTS, MAX_POLL_FAILURES, STEP_S, Action
from orchestrator.measurements.services import FACT_LIMIT
from orchestrator.runs import claims, leasing
from orchestrator.runs.models import Build, HostLease, Job, Trial
from orchestrator.runs.states import JobState
from tests.fuzz.inputs.results import _build_trial_files
from tests.support.factories import Personas
from tests.support.hostile_host import (
    answer,
    job_on_hostile_host,
    leave_files,
    read_calls,
)


@pytest.fixture
def job(personas: Personas, tmp_path: Path, data_dir: Path) -> Job:
    return job_on_hostile_host(personas, tmp_path)


def done(trial: Trial) -> dict[str, str]:
    return {"event": "trial_done", "trial": str(trial.pk)}


def poll(job: Job) -> Job:
    """One look at the host, which is due."""
    Job.objects.filter(pk=job.pk).update(poll_at=Now(), claim=None, claimed_until=None)
    engine.advance(job.pk)
    return Job.objects.get(pk=job.pk)


@pytest.mark.parametrize(
    ("loads", "what"),
    [
        ("x" * 400_000, "no list of loads"),
        ([{}] * 400_000, "400000 loads"),
        ({"1": 2}, "no list of loads"),
        ([{}, {}], "2 loads"),
    ],
)
def test_a_result_with_too_many_loads_fails_its_trial(job: Job, loads: Any, what: str) -> None:
    trial = job.trials.first()
    leave_files(job, trial, result_json=json.dumps({"loads": loads}).encode())
    answer(job, done(trial))
    assert poll(job).failures == 0
    trial.refresh_from_db()
    assert trial.state == "failed"
    assert trial.message.startswith(f"result.json has {what}, and the plan asked for 1")


def test_the_files_of_a_trial_have_a_total_limit(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_files, "TRIAL_LIMIT_BYTES", 3000)
    trial = job.trials.first()
    leave_files(job, trial, result_json=b'{"loads": [{}]}', tool_json=b"x" * 2000)
    leave_files(job, trial, rows_json=b"y" * 2000)
    answer(job, done(trial))
    poll(job)
    trial.refresh_from_db()
    assert trial.state == "failed"
    assert "The files of a trial may have 3000 bytes together" in trial.message


def test_the_files_of_each_trial_have_their_own_timeout(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    begin = Claim.begin

    def note(claim: Claim, step: str, limit_s: float) -> None:
        limits.append(limit_s)
        begin(claim, step, limit_s)

    monkeypatch.setattr(Claim, "begin", note)
    answer(job, *map(done, job.trials.all()))
    poll(job)
    count = job.trials.count()
    assert limits[: count + 1] == [STEP_S[Action.POLL], *[trial_files.FILES_S] * count]


def test_a_host_is_polled_again_whatever_delay_it_requests(job: Job) -> None:
    trial = str(job.trials.all()[0].pk)
    answer(job, {"event": "phase", "trial": trial, "phase": "measuring", "quiet_s": 1e9})
    poll(job)
    soon = Job.objects.filter(pk=job.pk, poll_at__lte=Now() + timedelta(seconds=MOST_QUIET_S))
    assert soon.exists()
    assert not soon.filter(poll_at__lte=Now() + timedelta(seconds=MOST_QUIET_S / 2)).exists()


def test_a_pipe_instead_of_a_file_blocks_nothing(job: Job) -> None:
    trial = job.trials.first()
    os.mkfifo(leave_files(job, trial) / "result.json")
    answer(job, done(trial))
    assert "is not a file" in poll(job).message


def test_a_log_is_limited_whatever_offset_the_host_reports(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "LOG_LIMIT", 200_000)
    sha = job.run.variants.get(position=0).commit.sha
    started = {"event": "build_started", "build": f"{sha}-abc", "commit": sha, "label": ""}
    answer(job, started)
    poll(job)
    poll(job)
    build = Build.objects.get()
    assert 200_000 < len(build.log) < 200_100
    assert build.log.endswith("the rest of this log was not kept\n")
    assert len([each for each in read_calls(job) if each.startswith("begin log")]) == 4


def test_a_log_without_content_ends_after_some_calls(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "LOG_CALLS", 3)
    sha = job.run.variants.get(position=0).commit.sha
    answer(job, {"event": "build_started", "build": f"{sha}-abc", "commit": sha})
    poll(job)
    assert len([each for each in read_calls(job) if each.startswith("begin log")]) == 3


def test_builds_that_the_job_does_not_have_are_refused(job: Job) -> None:
    sha = job.run.variants.get(position=0).commit.sha
    started = {"event": "build_started", "commit": sha}
    answer(job, *({**started, "build": f"{sha}-{number}"} for number in range(50)))
    assert "more builds than the 8" in poll(job).message
    assert Build.objects.count() == 8


@pytest.mark.parametrize(
    "digests",
    [None, "x", ["x"], {"build": 5, "source": None}, {"build": "g" * 64, "source": "a" * 10_000}],
)
def test_digests_that_are_none_are_not_stored(job: Job, digests: Any) -> None:
    sha = job.run.variants.get(position=0).commit.sha
    event = {"build": f"{sha}-abc", "commit": sha}
    answer(
        job,
        {"event": "build_started", **event},
        {"event": "build_done", **event, "cached": True, "digests": digests},
    )
    assert poll(job).failures == 0
    build = Build.objects.get()
    assert (build.state, build.digest, build.source_digest) == ("done", "", "")


def test_a_build_of_a_commit_that_is_not_of_the_job_is_refused(job: Job) -> None:
    answer(job, {"event": "build_started", "build": "x-y", "commit": "f" * 40})
    assert "which is not of the job" in poll(job).message


def test_a_journal_with_more_events_than_a_round_has_is_refused(job: Job) -> None:
    answer(job, *[{"event": "phase", "phase": "measuring"}] * 4000)
    failed_job = poll(job)
    assert "its journal has 4000 new events" in failed_job.message
    assert failed_job.state == JobState.FAILED


def test_a_trial_of_another_job_is_not_shown_as_its_own(
    job: Job, personas: Personas, tmp_path: Path
) -> None:
    other = Trial.objects.create(
        job=Job.objects.create(run=job.run),
        variant=job.trials.first().variant,
        case=job.trials.first().case,
        round=1,
        position=1,
        expected_s=1,
    )
    answer(job, {"event": "trial_started", "trial": str(other.pk)})
    assert poll(job).current_trial is None
    own = job.trials.last()
    answer(job, {"event": "trial_started", "trial": str(own.pk)})
    assert poll(job).current_trial == own.pk


def test_a_step_that_kills_its_worker_is_counted(job: Job) -> None:
    """As often as a step may fail; then the attempt is lost, without asking the host again."""
    for _ in range(MAX_POLL_FAILURES):
        assert claims.claim_job(job.pk) is not None
        Job.objects.filter(pk=job.pk).update(claimed_until=Now() - timedelta(seconds=1))
    before = len(read_calls(job))
    engine.advance(job.pk)
    record = Job.objects.get(pk=job.pk)
    assert (record.state, record.attempt, record.failures) == (JobState.QUEUED, 2, 0)
    assert f"{MAX_POLL_FAILURES} workers in a row ended in the middle of the step" in record.message
    assert len(read_calls(job)) == before
    Job.objects.filter(pk=job.pk).update(attempt=MAX_ATTEMPTS, state=JobState.MEASURING)
    Job.objects.filter(pk=job.pk).update(failures=99, poll_at=Now())
    engine.advance(job.pk)
    assert Job.objects.get(pk=job.pk).state == JobState.FAILED


def test_a_successful_step_resets_the_count_of_failures(job: Job) -> None:
    answer(job, {"event": "trial_done"})
    assert [poll(job).failures for _ in range(3)] == [1, 2, 3]
    answer(job)
    assert poll(job).failures == 0


def test_facts_that_are_too_long_are_not_stored_in_the_table(job: Job) -> None:
    (sample, _) = _build_trial_files()
    trial = job.trials.first()
    result = {**sample["result"], "server_argv": ["x" * FACT_LIMIT], "port": 80}
    leave_files(
        job,
        trial,
        result_json=json.dumps(result).encode(),
        tool_json=json.dumps(sample["report"]).encode(),
        rows_json=json.dumps(sample["rows"]).encode(),
    )
    answer(job, done(trial))
    poll(job)
    trial.refresh_from_db()
    assert trial.state == "measured", trial.message
    assert (trial.provenance["port"], trial.provenance["server_argv"]) == (80, None)
    assert trial.provenance["excluded_facts"] == ["server_argv"]


@pytest.mark.parametrize("code", ["stopped", "silence"])
def test_a_round_that_was_interrupted_costs_no_attempt(job: Job, code: str) -> None:
    answer(job, {"event": "aborted", "reason": code, "code": code})
    after = poll(job)
    assert (after.state, after.attempt, after.interruptions) == ("queued", 1, 1)
    assert after.message.startswith("the round was interrupted: the agent ")
    assert not HostLease.objects.exists()
    assert after.pk in leasing.lease_queued_jobs()


def test_a_round_that_ends_by_a_fault_of_the_agent_costs_an_attempt(job: Job) -> None:
    answer(job, {"event": "aborted", "reason": "KeyError", "code": "internal"})
    after = poll(job)
    assert (after.state, after.attempt, after.interruptions) == ("queued", 2, 0)


def test_a_host_cannot_interrupt_a_job_without_limit(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(interruptions=MAX_INTERRUPTIONS)
    job.refresh_from_db()
    answer(job, {"event": "aborted", "reason": "stopped", "code": "stopped"})
    after = poll(job)
    assert (after.attempt, after.interruptions) == (2, MAX_INTERRUPTIONS)
