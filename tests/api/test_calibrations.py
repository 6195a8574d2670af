"""Calibrating hosts over the API."""

from typing import Any

import pytest
from scipy.special import chdtri

from orchestrator.calibration.calibrations import judge_calibrations
from orchestrator.fleet.models import Host, HostChange, HostSnapshot
from orchestrator.runs.golden import NewGolden, set_golden
from orchestrator.runs.models import Run, Trial
from orchestrator.stats.power import (
    build_claim_rule,
    compute_needed_blocks,
    compute_smallest_change,
)
from tests.api.conftest import ApiClient
from tests.support.factories import DEFINITION, finish_run, make_definition
from tests.support.trials import ERRORS, STEAL, doubt
from tests.support.world import World


@pytest.fixture
def address(world: World) -> str:
    return f"hosts/{Host.objects.get(name='here').pk}/calibrations"


def test_a_calibration_starts_a_run_and_lists_its_result(
    world: World, alice: ApiClient, address: str
) -> None:
    payload = {"benchmark": "hello", "commit": world.shas[0], "pairs": 6}
    answer = alice.post(address, payload)
    shown = answer.json()
    assert (answer.status_code, answer["Location"]) == (201, shown["url"])
    assert (shown["rounds"], shown["baseline"]["commit"]) == (12, world.shas[0])
    assert shown["contenders"] == []
    assert alice.get(address).json()["calibrations"] == []

    finish_run(Run.objects.get(pk=shown["id"]), [1000], wobble=0.02)
    judge_calibrations()
    (calibration,) = alice.get(address).json()["calibrations"]
    assert (calibration["run"], calibration["benchmark"]) == (shown["id"], "hello")
    assert (calibration["present"], calibration["message"]) == (True, "")
    rate = calibration["noise"][0]
    sigma = rate["sigma"]
    assert (rate["metric"], rate["pairs"], rate["label"]) == ("requests.rate", 6, "connections 4")
    assert 0 < rate["low"] < sigma < rate["high"]
    rule = build_claim_rule(0.03, family=3)
    upper = sigma * (5 / chdtri(5, 0.8)) ** 0.5
    assert rate["smallest_changes"] == [
        {"blocks": blocks, "change": pytest.approx(compute_smallest_change(upper, blocks, rule))}
        for blocks in (5, 7, 10, 20)
    ]
    assert rate["rounds_for_twice_the_margin"] == compute_needed_blocks(upper, 0.06, rule)


def test_a_calibration_without_a_body_measures_the_commit_of_the_golden_run(
    world: World, alice: ApiClient, address: str
) -> None:
    refused = alice.post(address)
    assert (refused.status_code, refused.json()["field"]) == (422, "benchmark")
    new = NewGolden(benchmark="hello", commit=world.shas[1], every_hours=1)
    set_golden(member=world.personas.alice, host_id=Host.objects.get().pk, new=new)
    shown = alice.post(address).json()
    assert (shown["rounds"], shown["baseline"]["commit"]) == (20, world.shas[1])


def test_a_calibration_has_the_noise_between_builds(
    world: World, alice: ApiClient, address: str
) -> None:
    source = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")
    make_definition(world.alice, world.project, source=source)
    shown = alice.post(address, {"benchmark": "hello"}).json()
    assert shown["builds"] == 5
    finish_run(Run.objects.get(pk=shown["id"]), [1000])
    judge_calibrations()
    (calibration,) = alice.get(address).json()["calibrations"]
    noise = calibration["noise"][0]["build_noise"]
    assert noise["builds"] == 5
    assert 0 <= noise["low"] <= noise["sigma"] <= noise["high"]


def test_calibrations_of_another_epoch_are_marked(
    world: World, alice: ApiClient, address: str
) -> None:
    run = alice.post(address, {"benchmark": "hello", "pairs": 5}).json()["id"]
    finish_run(Run.objects.get(pk=run), [1000])
    judge_calibrations()
    host = Host.objects.get()
    snapshot = HostSnapshot.objects.create(host=host, facts={}, fingerprint="new")
    HostChange.objects.create(host=host, snapshot=snapshot, changed={}, at=snapshot.taken_at)
    assert alice.get(address).json()["calibrations"][0]["present"] is False


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"pairs": 4}, 422, "pairs"),
        ({"pairs": 51}, 422, "pairs"),
        ({"commit": "none"}, 422, "commit"),
        ({"benchmark": "none"}, 404, None),
        ({"rounds": 9}, 422, "rounds"),
    ],
)
def test_an_invalid_calibration_is_refused(
    alice: ApiClient, address: str, change: dict[str, Any], status: int, field: str | None
) -> None:
    answer = alice.post(address, {"benchmark": "hello", **change})
    assert (answer.status_code, answer.json().get("field")) == (status, field)
    assert not Run.objects.exists()


def test_a_second_calibration_waits_for_the_first(alice: ApiClient, address: str) -> None:
    assert alice.post(address, {"benchmark": "hello"}).status_code == 201
    again = alice.post(address, {"benchmark": "hello"})
    assert again.status_code == 409
    assert "wait for it, or cancel that run" in again.json()["detail"]


def test_viewers_cannot_calibrate_and_strangers_find_no_host(
    world: World, alice: ApiClient, bob: ApiClient, mallory: ApiClient, address: str
) -> None:
    assert bob.get(address).json()["calibrations"] == []
    assert bob.post(address, {"benchmark": "hello"}).status_code == 403
    assert mallory.get(address).status_code == 404
    assert mallory.post(address, {"benchmark": "hello"}).status_code == 404
    assert not Run.objects.exists()


def test_a_calibration_counts_trials_with_validity_issues(
    world: World, alice: ApiClient, address: str
) -> None:
    run = Run.objects.get(pk=alice.post(address, {"benchmark": "hello", "pairs": 6}).json()["id"])
    first, second, *_ = Trial.objects.filter(job__run=finish_run(run, [1000])).order_by("round")
    doubt(first, "invalid", ERRORS)
    doubt(second, "suspect", STEAL)
    judge_calibrations()
    (shown,) = alice.get(address).json()["calibrations"]
    assert (shown["suspect"], shown["excluded"]) == (1, 1)
    assert [each["code"] for each in shown["validity_issues"]] == ["http_errors", "steal"]
