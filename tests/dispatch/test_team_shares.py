"""Slow hosts of one team leave threads of the worker to the other teams."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.dispatch import checkup, engine
from orchestrator.dispatch.engine import StepResult
from orchestrator.dispatch.shares import TeamShares
from orchestrator.fleet.models import CheckRequest
from orchestrator.runs.models import Job
from tests.support.factories import Personas
from tests.support.hostile_host import answer, job_on_hostile_host, read_calls


@pytest.mark.parametrize(
    ("threads", "held_by_others", "most"),
    [(16, 0, 12), (16, 12, 3), (16, 15, 1), (4, 0, 3), (1, 0, 1)],
)
def test_a_team_can_use_three_quarters_of_the_free_slots(
    threads: int, held_by_others: int, most: int
) -> None:
    shares = TeamShares(threads)
    with ExitStack() as others:
        for number in range(held_by_others):
            others.enter_context(shares.admit(f"other {number}"))
        with ExitStack() as own:
            admitted = [own.enter_context(shares.admit("red")) for _ in range(threads)]
        assert admitted.count(True) == most
        with shares.admit("red") as again:
            assert again, "what was held is free again"


def test_a_job_waits_while_its_team_uses_its_share(
    personas: Personas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    job = job_on_hostile_host(personas, tmp_path)
    answer(job)
    shares = TeamShares(4)
    monkeypatch.setattr(engine, "SHARES", shares)
    with ExitStack() as slow:
        for _ in range(3):
            slow.enter_context(shares.admit(job.run.team_id))
        assert engine.advance(job.pk) == StepResult(wait_s=engine.SHARE_S)
        job = Job.objects.get(pk=job.pk)
        assert (job.claim, job.failures) == (None, 0)
        assert not read_calls(job), "the host was asked"
        with shares.admit("another team") as admitted:
            assert admitted
    Job.objects.filter(pk=job.pk).update(poll_at=job.created_at)
    assert engine.advance(job.pk).wait_s is not None
    assert read_calls(job)


def test_a_check_waits_while_its_team_uses_its_share(
    personas: Personas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    host = job_on_hostile_host(personas, tmp_path).host
    assert host is not None
    CheckRequest.objects.create(host=host)
    shares = TeamShares(1)
    monkeypatch.setattr(checkup, "SHARES", shares)
    with shares.admit(host.team_id):
        checkup.run_checks(host.pk)
        assert CheckRequest.objects.filter(host=host, claim=None, tries=0).exists()
    checkup.run_checks(host.pk)
    assert not CheckRequest.objects.filter(host=host).exists()
