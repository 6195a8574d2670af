"""Histories, trials and their files, and what runs can be made of."""

import pytest

from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial


@pytest.fixture
def history(world):
    run = world.measure_run(1000, 900, 800)
    return {
        "benchmark": "hello",
        "metric": "requests.rate",
        "case": run.jobs.get().trials.first().case.key,
        "host": "here",
    }


def test_a_history_shows_a_metric_along_the_commits(world, alice, history):
    shown = alice.get("history", **history).json()
    assert (shown["metric"], shown["host"], shown["project"]) == ("requests.rate", "here", "server")
    assert [point["commit"]["commit"] for point in shown["points"]] == world.shas
    values = [point["value"] for point in shown["points"]]
    assert values == pytest.approx([1000, 900, 800], rel=0.01)
    assert {point["trials"] for point in shown["points"]} == {5}
    # The noise between runs is not known from one run.
    assert {point["interval"] for point in shown["points"]} == {None}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"metric": "nothing"}, 422),
        ({"case": "nothing"}, 404),
        ({"host": "nothing"}, 404),
        ({"benchmark": "nothing"}, 404),
    ],
)
def test_an_unknown_series_is_not_found(alice, history, change, status):
    assert alice.get("history", **(history | change)).status_code == status


def test_a_stranger_sees_no_history(mallory, bob, history):
    assert mallory.get("history", **history).status_code == 404
    assert bob.get("history", **history).status_code == 200


def test_a_trial_is_shown_with_its_values_and_files(world, alice):
    trial = world.measure_run(1000, 800).jobs.get().trials.first()
    shown = alice.get(f"trials/{trial.pk}").json()
    measured = {each["metric"]: each for each in shown["measurements"]}
    assert measured["requests.rate"]["value"] == pytest.approx(1000, rel=0.25)
    assert measured["latency.p50"]["unit"] == "s"
    assert shown["provenance"]["argv"][0] == "oha"
    assert (shown["state"], shown["validity"]) == ("measured", "valid")
    (file,) = shown["artifacts"]
    assert (file["name"], file["size"]) == ("tool.json", 2)
    assert file["url"] == f"/api/v1/trials/{trial.pk}/artifacts/tool.json"


def test_a_trial_has_the_durations_of_its_prepare_steps(world, alice):
    trial = world.measure_run(1000, 800).jobs.get().trials.first()
    assert alice.get(f"trials/{trial.pk}").json()["prepare"] == []
    step = {"step": 1, "run": "seed", "each": "commit", "after": "build", "seconds": 2.5, "runs": 1}
    Trial.objects.filter(pk=trial.pk).update(provenance={**trial.provenance, "prepare": [step]})
    assert alice.get(f"trials/{trial.pk}").json()["prepare"] == [step]


def test_a_file_is_downloaded_unchanged(world, alice, bob, mallory):
    artifact = Artifact.objects.filter(trial__job__run=world.measure_run(1000, 800)).first()
    path = f"trials/{artifact.trial_id}/artifacts/tool.json"
    answer = alice.get(path)
    assert (answer.status_code, answer.content) == (200, b"{}")
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == "attachment"
    assert bob.get(path).status_code == 200
    assert mallory.get(path).status_code == 404
    assert alice.get(path + ".x").status_code == 404


def test_a_stranger_sees_no_trial(world, mallory):
    trial = world.measure_run(1000, 800).jobs.get().trials.first()
    assert mallory.get(f"trials/{trial.pk}").status_code == 404


def test_a_planned_trial_has_no_values(world, alice):
    trial = world.queue_run().jobs.get().trials.first()
    shown = alice.get(f"trials/{trial.pk}").json()
    assert (shown["state"], shown["validity"], shown["measurements"]) == ("planned", None, [])


def test_benchmarks_are_listed_with_their_cases(world, alice, mallory):
    world.queue_run()
    (shown,) = alice.get("benchmarks").json()["benchmarks"]
    assert (shown["benchmark"], shown["project"], shown["definition_version"]) == (
        "hello",
        "server",
        1,
    )
    assert [case["parameters"] for case in shown["cases"]] == [{"connections": 4}]
    assert mallory.get("benchmarks").json()["benchmarks"] == []
