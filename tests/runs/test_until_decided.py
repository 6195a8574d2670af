"""Requests of runs until decided, and their budget of machine time."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs import budgets
from orchestrator.runs.models import Build, Job, Run, Schedule
from orchestrator.runs.plans import RunPlan, RunRequest, plan_run
from orchestrator.runs.schedules import NewSchedule, create_schedule
from orchestrator.runs.selectors import load_progress
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_local_host,
    make_run,
)
from tests.support.world import World

#: Two cases, each of which takes 101.2 s a trial.
LONG = DEFINITION.replace("connections: [4]", "connections: [4, 8]").replace(
    "duration_s: 0.6", "duration_s: 100"
)
TRIAL_S = 0.2 + 100 + 1.0

pytestmark = pytest.mark.django_db


@pytest.fixture
def shas(personas: Personas, data_dir: Path, tmp_path: Path) -> list[str]:
    world = World.make(personas, tmp_path, source=LONG)
    make_local_host(personas.alice, "there")
    return world.shas


def planned(personas: Personas, shas: list[str], **changes: Any) -> RunPlan:
    fields = {"benchmark": "hello", "hosts": ("here",), "until": "decided", **changes}
    request = RunRequest(**{"baseline": shas[0], "contenders": (shas[1],), **fields})
    return plan_run(member=personas.alice, request=request)


def test_a_run_until_decided_has_up_to_twenty_rounds_and_reports_its_cost(
    personas: Personas, shas: list[str]
) -> None:
    plan = planned(personas, shas)
    assert (plan.rounds, plan.trial_count) == (20, 80)
    blocks = plan.blocks
    assert (blocks.least, blocks.typical, blocks.most) == (5, 10, 20)
    assert plan.estimate_seconds(5) == pytest.approx(5 * 4 * TRIAL_S)
    assert plan.estimate_seconds(20) == pytest.approx(plan.job_s)
    assert plan.warnings == ()


def test_a_run_of_fixed_rounds_is_unchanged(personas: Personas, shas: list[str]) -> None:
    plan = planned(personas, shas, until="rounds")
    assert (plan.rounds, plan.blocks.least, plan.blocks.most) == (5, 5, 5)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"contenders": ()}, "until", "nothing to decide"),
        ({"contenders": (), "until": "screened"}, "until", "nothing to decide"),
        ({"until": "bored"}, "until", "rounds, decided, screened"),
        ({"rounds": 4}, "rounds", "at least 5 rounds"),
        ({"rounds": 21}, "rounds", "at most 20"),
        ({"budget_s": 0.0}, "budget_s", "budget above 0"),
        ({"budget_s": float("nan")}, "budget_s", "budget above 0"),
        ({"budget_s": float("inf")}, "budget_s", "budget above 0"),
        ({"budget_s": 300.0}, "budget_s", "6 min 45 s"),
        ({"budget_s": 800.0, "hosts": ("here", "there")}, "budget_s", "13 min 30 s"),
    ],
)
def test_invalid_combinations_are_refused(
    personas: Personas, shas: list[str], changes: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(InvalidRequestError, match=says) as refused:
        planned(personas, shas, **changes)
    assert refused.value.field == field


def test_a_budget_too_small_for_a_verdict_gives_a_warning(
    personas: Personas, shas: list[str]
) -> None:
    plan = planned(personas, shas, budget_s=1000.0)
    assert "is too small for the 5 rounds" in plan.warnings[0]
    assert plan.estimate_seconds(20) == 1000.0
    assert planned(personas, shas, budget_s=3000.0).warnings == ()


def test_the_run_stores_its_end_condition(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas[:2], until="screened", budget_s=3600.0)
    run.refresh_from_db()
    assert (run.until, run.budget_s, run.rounds) == ("screened", 3600.0, 20)


@pytest.mark.parametrize("changes", [{"until": "bored"}, {"budget_s": 0}, {"budget_s": -1}])
def test_the_database_refuses_an_invalid_end_condition(
    personas: Personas, shas: list[str], changes: dict[str, Any]
) -> None:
    run = make_run(personas.alice, shas[:2])
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(**changes)


def measured(job: Job, *rounds: int, seconds: float) -> None:
    now = utc_now()
    job.trials.filter(round__in=rounds).update(
        state="measured",
        validity="valid",
        started_at=now - timedelta(seconds=seconds),
        ended_at=now,
    )


def test_the_spent_budget_includes_trials_and_builds(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas[:2], until="decided", budget_s=10_000.0)
    job = run.jobs.first()
    assert job is not None
    assert budgets.sum_spent_s(run) == 0
    measured(job, 1, 2, seconds=150)
    assert budgets.sum_spent_s(run) == pytest.approx(2 * 2 * 150)
    job.trials.filter(round=3).update(state="failed")
    assert budgets.sum_spent_s(run) == pytest.approx(2 * 2 * 150 + 2 * TRIAL_S)
    commit = run.variants.all()[0].commit
    build = {"job": job, "host": job.host, "commit": commit, "started_at": utc_now()}
    Build.objects.create(**build, recipe="a", seconds=50)
    Build.objects.create(**build, recipe="b", seconds=70, cached=True)
    assert budgets.sum_spent_s(run) == pytest.approx(2 * 2 * 150 + 2 * TRIAL_S + 50)
    left = budgets.compute_left_s(run)
    assert left == pytest.approx(10_000 - 650 - 2 * TRIAL_S)
    now = load_progress(run).left
    assert now is not None
    assert now.most <= left


def test_a_job_reserves_five_rounds_for_the_other_jobs_of_its_run(
    personas: Personas, shas: list[str]
) -> None:
    """Two jobs, of which a round takes 2 trials each."""
    run = make_run(personas.alice, shas[:2], until="decided", budget_s=15 * 2 * TRIAL_S + 1)
    first, second = run.jobs.order_by("created_at", "pk")
    measured(first, *range(1, 10), seconds=TRIAL_S)
    assert budgets.allows_round(first, 10)
    measured(first, 10, seconds=TRIAL_S)
    assert not budgets.allows_round(first, 11)
    assert budgets.allows_round(second, 1)
    run.jobs.filter(pk=second.pk).update(state="failed")
    assert budgets.allows_round(first, 11)


def test_without_a_budget_every_round_is_allowed(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas[:2], until="decided")
    job = run.jobs.first()
    assert job is not None
    measured(job, *range(1, 20), seconds=1e6)
    assert budgets.allows_round(job, 20)
    assert budgets.compute_left_s(run) is None


def test_a_schedule_can_run_until_decided(personas: Personas, shas: list[str]) -> None:
    new = NewSchedule(
        name="nightly",
        cron="0 3 * * *",
        benchmark="hello",
        baseline_ref=shas[0],
        contender_ref=shas[1],
        hosts=("here",),
        until="decided",
        budget_s=3600.0,
    )
    create_schedule(member=personas.alice, new=new)
    kept = Schedule.objects.get()
    assert (kept.until, kept.budget_s) == ("decided", 3600.0)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"contender_ref": ""}, "until"),
        ({"rounds": 3}, "rounds"),
        ({"budget_s": -1.0}, "budget_s"),
        ({"until": "never"}, "until"),
    ],
)
def test_a_schedule_that_could_never_run_is_refused(
    personas: Personas, shas: list[str], changes: dict[str, Any], field: str
) -> None:
    values: dict[str, Any] = {
        "name": "nightly",
        "cron": "0 3 * * *",
        "benchmark": "hello",
        "baseline_ref": shas[0],
        "contender_ref": shas[1],
        "hosts": ("here",),
        "until": "decided",
        **changes,
    }
    with pytest.raises(InvalidRequestError) as refused:
        create_schedule(member=personas.alice, new=NewSchedule(**values))
    assert refused.value.field == field
