"""A run until decided, over the API."""

import pytest

from orchestrator.runs.models import InterimAnalysis, Run


def test_a_run_until_decided_is_started(world, alice):
    shown = alice.post("runs", world.run_body(until="decided", rounds=None, budget_s=600)).json()
    run = Run.objects.get()
    assert (run.until, run.budget_s, run.rounds) == ("decided", 600.0, 20)
    assert (shown["until"], shown["budget_s"], shown["rounds"]) == ("decided", 600.0, 20)
    assert shown["trials_total"] == 40
    assert shown["seconds_left_at_least"] < shown["seconds_left"] < shown["seconds_left_at_most"]
    (case,) = shown["jobs"][0]["cases"]
    assert case["state"] == "open"
    assert case["text"] == "first analysis after 5 clean blocks; 0 done"
    assert (case["blocks"], case["verdict"], case["more_blocks"]) == (0, None, 5)


def test_a_run_has_fixed_rounds_by_default(world, alice):
    shown = alice.post("runs", world.run_body(rounds=2)).json()
    assert (shown["until"], shown["budget_s"], shown["trials_not_needed"]) == ("rounds", None, 0)
    assert shown["seconds_left_at_least"] == shown["seconds_left"] == shown["seconds_left_at_most"]
    assert shown["jobs"][0]["cases"] == []


def test_the_status_of_each_case_is_reported(world, alice):
    shown = alice.post("runs", world.run_body(until="decided", rounds=None)).json()
    job = Run.objects.get().jobs.get()
    trials = job.trials.order_by("round")
    trials.filter(round__lte=7).update(state="measured", validity="valid")
    trials.filter(round__gt=7).update(state="not needed", message="decided after 7 blocks")
    InterimAnalysis.objects.create(
        job=job,
        case=trials[0].case,
        blocks=7,
        excluded=0,
        decided=True,
        futile=False,
        verdict="equivalent",
        p_values=[0.5],
        message="no change",
    )
    shown = alice.get(f"runs/{shown['id']}").json()
    assert (shown["trials_done"], shown["trials_not_needed"]) == (40, 26)
    assert shown["seconds_left"] == 0
    (case,) = shown["jobs"][0]["cases"]
    assert (case["state"], case["text"]) == ("decided", "decided after 7 blocks: no change")
    assert (case["blocks"], case["verdict"], case["more_s"]) == (7, "equivalent", None)
    page = alice.get(f"runs/{shown['id']}/trials").json()
    assert "not needed" in {trial["state"] for trial in page["trials"]}


def test_the_blocks_still_needed_are_a_range(world, alice):
    shown = alice.post("runs", world.run_body(until="decided", rounds=None)).json()
    job = Run.objects.get().jobs.get()
    trials = job.trials.order_by("round")
    trials.filter(round__lte=5).update(state="measured", validity="valid")
    InterimAnalysis.objects.create(
        job=job,
        case=trials[0].case,
        blocks=5,
        excluded=0,
        decided=False,
        futile=False,
        verdict="inconclusive",
        p_values=[0.5],
        message="not decided",
        needed_blocks=9,
        needed_least=7,
        needed_most=111,
    )
    (case,) = alice.get(f"runs/{shown['id']}").json()["jobs"][0]["cases"]
    assert (case["more_blocks"], case["more_blocks_range"]) == (4, [2, None])
    assert "needs about 2 to over 100 more blocks" in case["text"]


def test_the_plan_is_a_range(world, alice):
    plan = alice.post("runs/plan", world.run_body(until="decided", rounds=None)).json()
    assert (plan["until"], plan["rounds"], plan["trials"]) == ("decided", 20, 40)
    assert plan["seconds_at_least"] == pytest.approx(plan["seconds"] / 4)
    assert plan["seconds_typical"] == pytest.approx(plan["seconds"] / 2)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"until": "bored"}, "until"),
        ({"until": "decided", "rounds": 40}, "rounds"),
        ({"until": "decided", "contenders": []}, "until"),
        ({"budget_s": 0}, "budget_s"),
        ({"budget_s": 0.5}, "budget_s"),
    ],
)
def test_an_invalid_combination_is_refused_with_the_field(world, alice, changes, field):
    answer = alice.post("runs", {**world.run_body(rounds=None), **changes})
    assert answer.status_code == 422
    assert field in str(answer.json())
    assert not Run.objects.exists()
