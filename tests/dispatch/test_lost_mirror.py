"""A job whose commit is not in the mirror has it fetched once, and does not wait without limit."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F

from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.refs import (
    TRIES,
    FetchRunningError,
    get_mirror_path,
    open_repository_with,
)
from orchestrator.benchmarks.repository import Repository
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.heartbeat import build_unlimited_claim
from orchestrator.database.clock import read_database_time
from orchestrator.dispatch import engine
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.plan import MAX_ATTEMPTS
from orchestrator.dispatch.sources import build_source_path
from orchestrator.runs import claims, leasing
from orchestrator.runs.models import HostLease, Job
from orchestrator.runs.states import JobState
from tests.dispatch.support import THEIR_OHA, facts
from tests.support.factories import Personas
from tests.support.fetches import fetch_now, run_fetches
from tests.support.hostile_host import answer, job_on_hostile_host


@pytest.fixture
def job(personas: Personas, tmp_path: Path, data_dir: Path) -> Job:
    return job_on_hostile_host(personas, tmp_path)


def get_project(job: Job) -> Project:
    return job.run.definition.benchmark.project


def open_with(job: Job, sha: str) -> Repository:
    assert job.started_at is not None
    return open_repository_with(get_project(job), sha, job.started_at)


def test_a_fetch_after_the_start_of_the_job_decides(job: Job, tmp_path: Path) -> None:
    project = get_project(job)
    sha = project.commits.latest("position").sha
    get_mirror_path(project).rename(tmp_path / "lost")
    with pytest.raises(FetchRunningError):
        open_with(job, sha)
    # A fetch into the mirror that was lost is no answer.
    Fetch.objects.update(succeeded_at=read_database_time())
    with pytest.raises(FetchRunningError):
        open_with(job, sha)
    fetch_now(project)
    assert open_with(job, sha).has(sha)
    # However long ago that fetch started: another one would not bring the commit either.
    Fetch.objects.update(succeeded_at=job.started_at)
    with pytest.raises(InvalidRequestError, match="there is no commit"):
        open_with(job, "0" * 40)


def test_failed_fetches_end_the_wait(job: Job, tmp_path: Path) -> None:
    project = get_project(job)
    (tmp_path / "origin").rename(tmp_path / "moved")
    get_mirror_path(project).rename(tmp_path / "lost")
    for _ in range(TRIES):
        with pytest.raises(FetchRunningError):
            open_with(job, "0" * 40)
        request_fetch(project)
        run_fetches()
    request_fetch(project)
    with pytest.raises(InvalidRequestError, match="could not be fetched"):
        open_with(job, "0" * 40)


def test_a_job_does_not_wait_for_a_missing_fetcher(job: Job) -> None:
    held = claims.claim_job(job.pk)
    assert held is not None
    job_hosts = JobHosts(held, build_unlimited_claim())
    assert engine._wait_for_fetch(held, job_hosts, get_project(held)) == engine.FETCH_POLL_S
    began = timedelta(seconds=engine.FETCH_PATIENCE_S + 60)

    def wait() -> float | None:
        Job.objects.filter(pk=job.pk).update(
            started_at=held.started_at - began, poll_at=held.created_at
        )
        again = claims.claim_job(job.pk)
        assert again is not None
        return engine._wait_for_fetch(
            again, JobHosts(again, build_unlimited_claim()), get_project(again)
        )

    assert wait() == engine.FETCH_POLL_S, "the fetch is due for a moment, however old the job is"
    Fetch.objects.update(next_at=F("next_at") - began)
    assert wait() is None
    ended = Job.objects.get(pk=job.pk)
    assert ended.state == "failed"
    assert "no worker fetches the repository of server" in ended.message


def test_a_job_goes_back_to_the_queue_while_the_disk_is_full(job: Job, settings: Any) -> None:
    shas = [variant.commit.sha for variant in job.run.variants.select_related("commit")]
    present = {build_source_path(sha): False for sha in shas}
    ready = {"facts": facts(oha=THEIR_OHA), "commits": dict.fromkeys(shas, False)}
    answer(job, prepare={**ready, "present": present})
    Job.objects.filter(pk=job.pk).update(state=JobState.PREPARING, step_started=False)
    settings.LOAD_TOOLS = {}
    settings.MIN_FREE_DISK_MIB = (shutil.disk_usage(settings.DATA_DIR).total >> 20) + 1
    assert engine.advance(job.pk).left_hosts
    waiting = Job.objects.get(pk=job.pk)
    assert (waiting.state, waiting.attempt) == ("queued", 2), waiting.message
    assert "PITWALL_MIN_FREE_DISK_MIB" in waiting.message
    assert not HostLease.objects.exists()
    # The last attempt ends it.
    Job.objects.filter(pk=job.pk).update(attempt=MAX_ATTEMPTS, not_before=None)
    leasing.lease_queued_jobs()
    assert engine.advance(job.pk).left_hosts
    assert Job.objects.get(pk=job.pk).state == "failed"
