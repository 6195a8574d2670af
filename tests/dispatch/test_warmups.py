"""The warm-up grows where a window began too early, for all variants of the next rounds."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.rounds import build_round_plans
from orchestrator.dispatch.warmups import lengthen_warmup
from orchestrator.runs import step_rounds
from orchestrator.runs.models import Job, Trial
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, Personas


@pytest.fixture
def job(personas: Personas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Its rounds have separate plans, as rounds of long loads have."""
    monkeypatch.setattr(step_rounds, "LONGEST_S", 0.0)
    return leased(personas, tmp_path, DEFINITION, rounds=4)


def warmups(job: Job, number: int) -> set[float]:
    """Of all trials of a round."""
    Job.objects.filter(pk=job.pk).update(round=number)
    job.refresh_from_db()
    plans: list[Any] = [
        json.loads(plan) for plan in build_round_plans(job, JobHosts(job), {}).values()
    ]
    trials = plans[0]["trials"]
    assert len(trials) == 2
    return {load["warmup_s"] for trial in trials for load in trial["loads"]}


def measured(job: Job, number: int, *reasons: str) -> None:
    """One variant's trial of a round, with these reasons; the other one's without."""
    trials = list(job.trials.filter(round=number).order_by("position"))
    for trial, own_reasons in zip(trials, (list(reasons), []), strict=True):
        Trial.objects.filter(pk=trial.pk).update(
            state="measured", validity="suspect" if own_reasons else "valid", reasons=own_reasons
        )


def test_a_warm_up_is_kept_if_the_window_was_steady(job: Job) -> None:
    (given,) = warmups(job, 1)
    measured(job, 1, "steal: the hypervisor took 2 % of the CPUs' time")
    assert warmups(job, 2) == {given}


def test_a_warm_up_doubles_for_both_sides_after_an_unsteady_round(job: Job) -> None:
    (given,) = warmups(job, 1)
    measured(job, 1, "warm_up_too_short: the first 5 s of the window are still warm-up")
    assert warmups(job, 2) == {2 * given}
    measured(job, 2)
    assert warmups(job, 3) == {2 * given}
    measured(job, 3, "steal: …", "warm_up_too_short: …")
    assert warmups(job, 4) == {4 * given}


def test_a_warm_up_has_a_maximum() -> None:
    assert lengthen_warmup(10.0, 1, {1: 8}) == 80.0
    assert lengthen_warmup(60.0, 1, {1: 8}) == 120.0
    assert lengthen_warmup(300.0, 1, {1: 8}) == 300.0
    assert lengthen_warmup(10.0, 2, {1: 8}) == 10.0
