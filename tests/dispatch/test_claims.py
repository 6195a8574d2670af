"""A job's claim outlives its step: two workers never carry out the same one, however slow it is."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as configured
from django.db import transaction
from django.db.models.functions import Now

from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.core import heartbeat
from orchestrator.core.heartbeat import Claim, ClaimLost, Heartbeat, StepTimedOutError
from orchestrator.database.row_claims import build_row_claim
from orchestrator.fleet.check_requests import (
    claim_request,
    end_request,
    load_due_host_ids,
    request_check,
)
from orchestrator.runs.models import Job
from tests.support.engine import ROOT, own_database_url
from tests.support.factories import make_personas
from tests.support.hostile_host import answer, job_on_hostile_host, read_calls, status
from tests.support.waiting import wait_until

CLAIM_S = 2.0


@pytest.fixture
def job(tmp_path: Path, transactional_db: None, data_dir: Path) -> Job:
    return job_on_hostile_host(make_personas(), tmp_path)


@contextmanager
def worker(job: Job, clock_s: float = 0.0) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-m", "tests.support.lone_worker", str(job.pk), str(CLAIM_S)]
    environment = {
        **os.environ,
        "DATABASE_URL": own_database_url(),
        "PITWALL_DATA_DIR": str(configured.DATA_DIR),
        "PITWALL_SECRET_KEY": configured.SECRET_KEY,
    }
    process = subprocess.Popen([*argv, str(clock_s)], cwd=ROOT, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_two_workers_never_execute_the_same_step(job: Job) -> None:
    """Each answer of the host takes longer than a turn, and the workers' clocks are hours apart."""
    answer(job, sleep_s=1.5 * CLAIM_S)
    with worker(job, -3600.0), worker(job, 3600.0):
        wait_until(lambda: len(read_calls(job)) >= 5)
    words = [line.split()[0] for line in read_calls(job)]
    assert words[:4] == ["begin", "end"] * 2
    assert "begin begin" not in " ".join(words)


def test_a_worker_that_dies_in_the_middle_has_counted_the_step(job: Job) -> None:
    answer(job, kill="status")
    with worker(job) as process:
        assert process.wait(timeout=60) == -9
    assert Job.objects.get(pk=job.pk).failures == 1
    answer(job, status=status(alive=True))
    with worker(job):
        # The dead worker's turn runs out, and the next one takes the job over.
        wait_until(lambda: Job.objects.get(pk=job.pk).failures == 0)


def claim(renew: Any) -> Claim:
    return Claim(renew=renew, lasts_s=1.0, since=time.monotonic())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)


@contextmanager
def cut_off(mine: Claim) -> Iterator[None]:
    """A step that goes on until what it has open is closed, and then wants to ask the host."""
    closed: list[bool] = []
    with mine.closing(lambda: closed.append(True)):
        wait_until(lambda: closed)
        mine.check()
        yield


def test_a_claim_taken_by_another_worker_stops_the_step(quick: None) -> None:
    with Heartbeat().keeping(claim(lambda: False)) as mine:
        mine.begin("a step", 60)
        with pytest.raises(ClaimLost), cut_off(mine):
            raise AssertionError("it went on")


def test_a_claim_that_cannot_be_renewed_is_given_up(quick: None) -> None:
    def away() -> bool:
        raise OSError("no database")

    with Heartbeat().keeping(claim(away)) as mine:
        mine.begin("a step", 60)
        with pytest.raises(ClaimLost), cut_off(mine):
            raise AssertionError("it went on")


def test_a_claim_is_renewed_until_the_deadline_of_the_step(quick: None) -> None:
    renewed: list[bool] = []

    def renew() -> bool:
        renewed.append(True)
        return True

    with Heartbeat().keeping(claim(renew)) as mine:
        mine.begin("a step", 2.0)
        with pytest.raises(StepTimedOutError, match="a step took longer"), cut_off(mine):
            raise AssertionError("it went on")
        assert len(renewed) > 1
        # What comes after, such as ending what was left behind, has a time of its own.
        mine.begin("the next step", 60)
        mine.check()


def test_a_row_that_is_locked_does_not_delay_the_claims_of_other_rows(
    job: Job, quick: None
) -> None:
    """Its claim is renewed as soon as the lock is gone."""
    locked, free = held_fetch(job), held_fetch(job)
    since = time.monotonic() - 15
    claims = [
        build_row_claim(
            Fetch.objects.filter(pk=each.pk), until="claimed_until", lasts_s=30, since=since
        )
        for each in (locked, free)
    ]
    heart = Heartbeat()
    with ExitStack() as kept:
        with transaction.atomic():
            Fetch.objects.select_for_update().get(pk=locked.pk)
            for each in claims:
                each.begin("a step", 60)
                kept.enter_context(heart.keeping(each))
            wait_until(lambda: is_renewed(free), timeout_s=60)
            assert not is_renewed(locked)
        wait_until(lambda: is_renewed(locked))


def held_fetch(job: Job) -> Fetch:
    project = Project.objects.create(
        team=job.run.team, slug=f"p{Project.objects.count()}", name="p"
    )
    return Fetch.objects.create(project=project, claim=uuid4(), claimed_until=job.created_at)


def is_renewed(fetch: Fetch) -> bool:
    return Fetch.objects.filter(pk=fetch.pk, claimed_until__gt=Now()).exists()


def test_checks_that_are_requested_during_the_checks_follow_them(job: Job) -> None:
    assert job.host is not None
    request_check(job.host)
    taken = claim_request(job.host.pk)
    assert taken is not None
    request_check(job.host)
    assert load_due_host_ids() == [], "a worker has them"
    end_request(taken)
    assert load_due_host_ids() == [job.host.pk]
    again = claim_request(job.host.pk)
    assert again is not None
    end_request(again)
    assert load_due_host_ids() == []
