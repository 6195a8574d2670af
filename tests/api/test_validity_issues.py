"""Every answer with a trial's or a case's number says whether it is to be believed."""

import pytest

from orchestrator.runs.models import Trial
from tests.support.trials import ERRORS, STEAL, doubt, first_trial, leave_load


@pytest.fixture
def run(world):
    """Of the baseline's five trials one is invalid and one suspect."""
    run = world.measure_run(1000, 800)
    invalid, suspect, *_ = Trial.objects.filter(job__run=run, variant__position=0).order_by("round")
    doubt(invalid, "invalid", ERRORS)
    doubt(suspect, "suspect", STEAL)
    return run


def test_lists_of_trials_exclude_and_count_invalid_ones(alice, run):
    shown = alice.get(f"runs/{run.pk}/trials").json()
    assert (len(shown["trials"]), shown["invalid_excluded"]) == (9, 1)
    every = alice.get(f"runs/{run.pk}/trials", invalid="true").json()
    assert (len(every["trials"]), every["invalid_excluded"]) == (10, 0)
    reasons = {each["validity"]: each["reasons"] for each in every["trials"]}
    assert reasons == {"valid": [], "suspect": [STEAL], "invalid": [ERRORS]}


def test_a_comparison_counts_blocks_with_validity_issues(alice, run):
    (case,) = alice.get("comparisons", run=str(run.pk)).json()["cases"]
    assert (case["excluded_blocks"], case["suspect_blocks"]) == (1, 1)
    assert [(each["code"], each["title"], each["trials"]) for each in case["validity_issues"]] == [
        ("http_errors", "Answers of another status", 1),
        ("steal", "CPU that the hypervisor took", 1),
    ]


def test_a_history_counts_trials_with_validity_issues(world, alice, run):
    query = {"benchmark": "hello", "host": "here", "case": first_trial(run).case.key}
    shown = alice.get("history", **query, metric="latency.p99").json()
    first = shown["points"][0]
    assert (first["trials"], first["suspect"], first["excluded"]) == (4, 1, 1)
    assert {each["code"] for each in first["validity_issues"]} == {"http_errors", "steal"}
    assert shown["excluded"] == 1
    assert shown["label"].startswith("closed loop")
    assert alice.get("history", **query, metric="requests.rate").json()["label"] is None


def test_a_trial_reports_its_loads_and_costs(alice, run):
    trial = Trial.objects.filter(job__run=run, validity="valid")[0]
    leave_load(
        trial, 0, rate=50.0, passed=False, reason="latency.p99 80 ms", validity="suspect",
        reasons=[STEAL], readings={"requests.rate": 49.5},
    )  # fmt: skip
    shown = alice.get(f"trials/{trial.pk}").json()
    (load,) = shown["loads"]
    assert (load["rate"], load["passed"], load["reason"]) == (50.0, False, "latency.p99 80 ms")
    assert (load["validity"], load["reasons"]) == ("suspect", [STEAL])
    assert load["readings"] == {"requests.rate": 49.5}
    costs = {each["metric"]: each for each in shown["costs"]}
    assert costs["cpu.seconds_per_1k"]["value"] > 0
    assert costs["energy.joules_per_1k"]["value"] is None
    assert costs["energy.joules_per_1k"]["reason"]
    labels = {each["metric"]: each["label"] for each in shown["measurements"]}
    assert labels["latency.p99"].startswith("closed loop")
    assert labels["requests.rate"] is None
