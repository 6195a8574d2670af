"""Of a run: its parts are cancelled, it is started again, and its commits are chosen by rules."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from orchestrator.results.models import Reading
from orchestrator.runs.models import Run
from tests.support import factories


def test_a_case_and_a_job_are_cancelled(world, alice, bob, mallory):
    run = world.queue_run()
    job = run.jobs.get()
    case = job.trials.first().case.key
    paths = [f"runs/{run.pk}/cases/{case}/cancel", f"runs/{run.pk}/jobs/{job.pk}/cancel"]
    for path in paths:
        assert (bob.post(path).status_code, mallory.post(path).status_code) == (403, 404)
    assert alice.post(f"runs/{run.pk}/cases/nothing/cancel").status_code == 404
    assert alice.post(paths[0]).json()["jobs"][0]["state"] == "cancelled"
    assert alice.post(paths[1]).status_code == 409
    other = world.queue_run()
    path = f"runs/{other.pk}/jobs/{other.jobs.get().pk}/cancel"
    assert alice.post(path).json()["state"] == "cancelled"


def test_a_run_is_started_again(world, alice, bob, mallory):
    run = world.measure_run(1000, 900)
    path = f"runs/{run.pk}/rerun"
    assert (bob.post(path).status_code, mallory.post(path).status_code) == (403, 404)
    answer = alice.post(path, key="again")
    assert alice.post(path, key="again").json() == answer.json()
    again, before = answer.json(), alice.get(f"runs/{run.pk}").json()
    assert (answer.status_code, again["state"]) == (201, "queued")
    for name in ("benchmark", "baseline", "contenders", "rounds", "until"):
        assert again[name] == before[name]
    assert again["seed"] != before["seed"]
    assert Run.objects.count() == 2


@pytest.mark.parametrize(
    ("baseline", "contender", "place"),
    [
        ("merge-base:main", "feature", 1),
        ("merge-base:main", "main", 1),
        ("newest-measured:main", "feature", 0),
    ],
)
def test_the_baseline_of_a_run_is_found_by_a_rule(world, alice, baseline, contender, place):
    git = factories.git
    git(world.repository, "checkout", "--quiet", "-b", "feature", world.shas[1])
    factories.commit_files(world.repository, {"file.txt": "feature\n"}, 9)
    git(world.repository, "checkout", "--quiet", "main")
    factories.finish_run(factories.make_run(world.personas.alice, world.shas[:1]), [1000])
    body = world.run_body(baseline=baseline, contenders=[], ref=contender)
    answer = alice.post("runs", body)
    assert answer.status_code == 201, answer.content
    assert answer.json()["baseline"]["commit"] == world.shas[place]


@pytest.mark.parametrize(
    "changes",
    [
        {"baseline": "nearest:main"},
        {"baseline": "merge-base:"},
        {"baseline": "newest-measured:main"},
        {"baseline": "merge-base:main", "contenders": []},
    ],
)
def test_a_rule_without_a_baseline_is_refused(world, alice, changes):
    answer = alice.post("runs", world.run_body(**changes))
    assert (answer.status_code, answer.json()["field"]) == (422, "baseline")


def test_a_target_resolution_needs_a_calibration_and_excludes_rounds(world, alice):
    for changes in ({}, {"rounds": 5}, {"resolution": 0.03}):
        answer = alice.post("runs", world.run_body(**{"resolution": 0.05, **changes}))
        assert answer.status_code == 422
        assert "resolution" in (answer.json().get("field") or answer.json()["detail"])


def test_a_target_resolution_sets_the_rounds(world, alice):
    world.measure_run(1000, 1001)
    body = world.run_body(resolution=0.05)
    planned = alice.post("runs/plan", body).json()
    run = alice.post("runs", body, key="r").json()
    assert run["rounds"] == planned["rounds"] >= 5
    assert alice.post("runs", body, key="r").json()["id"] == run["id"]


def test_results_of_a_run_are_exported_and_imported_by_another_team(world, alice, mallory):
    run = world.measure_run(1000, 900)
    assert mallory.get("results", run=str(run.pk)).status_code == 404
    answer = alice.get("results", run=str(run.pk))
    text = b"".join(answer.streaming_content)
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(lines) == Reading.objects.count() == 10
    assert {line["block"] for line in lines} == {f"{run.jobs.get().pk}/{n}" for n in range(1, 6)}
    project, _ = factories.make_project(world.personas.mallory, world.repository.parent / "other")
    factories.make_definition(world.personas.mallory, project)
    headers = {"Authorization": f"Bearer {mallory.secret}"}
    for accepted in (10, 0):
        file = SimpleUploadedFile("results.jsonl", text)
        answer = Client().post("/api/v1/results/files", {"file": file}, headers=headers)
        assert answer.json() == {"accepted": accepted, "repeated": 10 - accepted}
    sides = {"baseline": world.shas[0], "contender": world.shas[1]}
    ours, theirs = (each.get("comparisons", **sides).json() for each in (alice, mallory))
    assert (theirs["verdict"], theirs["paired"]) == (ours["verdict"], True) == ("regressed", True)


def test_a_comparison_has_machine_readable_reasons(world, alice):
    decided = world.measure_run(1000, 850)
    shown = alice.get("comparisons", run=str(decided.pk)).json()
    assert [(each["code"], each["count"]) for each in shown["reasons"]] == [("cases_regressed", 1)]
    assert shown["missing"] is None
    (case,) = shown["cases"]
    codes = {each["metric"]: each["code"] for each in case["reasons"]}
    assert codes["requests.rate"] == "beyond_margin"

    few = factories.finish_run(
        factories.make_run(world.personas.alice, world.shas[1:], rounds=3), [1000, 999]
    )
    shown = alice.get("comparisons", run=str(few.pk)).json()
    assert (shown["verdict"], shown["reasons"][0]["code"]) == ("inconclusive", "cases_inconclusive")
    (case,) = shown["cases"]
    assert {each["code"] for each in case["reasons"]} == {"too_few_blocks"}
    assert case["missing"]["trials"] == 2 * case["missing"]["blocks"] == shown["missing"]["trials"]
