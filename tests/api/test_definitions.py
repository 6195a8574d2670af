"""Definitions over the API: checked, saved, read from the repository; and what a run would take."""

import pytest

from orchestrator.benchmarks.models import Benchmark, Definition
from orchestrator.runs.models import Run
from tests.runs.test_choosing_cases import MATRIX
from tests.support.factories import DEFINITION, commit_files, make_definition
from tests.support.fetches import fetch_now

VERSIONS = "benchmarks/server/hello/definitions"


def test_versions_are_saved_listed_and_shown(world, alice):
    source = DEFINITION.replace("rounds: 5", "rounds: 9")
    saved = alice.post(VERSIONS, {"source": source})
    again = alice.post(VERSIONS, {"source": source})

    assert (saved.status_code, saved.json()["version"]) == (201, 2)
    assert again.json()["version"] == 2
    listed = alice.get(VERSIONS).json()["definitions"]
    assert [each["version"] for each in listed] == [2, 1]
    assert {key: listed[0][key] for key in ("created_by", "commit", "path")} == {
        "created_by": "alice", "commit": None, "path": "",
    }  # fmt: skip
    assert alice.get(f"{VERSIONS}/2").json()["source"] == source
    assert alice.get(f"{VERSIONS}/7").status_code == 404


def test_an_invalid_definition_is_refused_with_the_path(world, alice):
    wrong = DEFINITION.replace("duration_s: 0.6", "duration_s: soon")
    refused = alice.post(VERSIONS, {"source": wrong})
    checked = alice.post("definitions/check", {"source": wrong}).json()

    assert refused.status_code == 422
    assert refused.json()["field"] == "load.duration_s"
    assert (checked["valid"], checked["field"], checked["line"]) == (False, "load.duration_s", 9)
    assert "expected a valid number" in checked["expectation"]


def test_a_definition_is_reviewed_with_cases_and_duration(world, alice):
    checked = alice.post("definitions/check", {"source": MATRIX}).json()

    assert (checked["valid"], checked["cases"], checked["round_s"]) == (True, 12, 18)
    assert checked["tools"] == {"oha": 6}
    assert len(checked["unsupported"]) == 6
    assert Definition.objects.count() == 1


def test_a_definition_is_imported_from_the_repository(world, alice):
    sha = commit_files(world.repository, {".pitwall.yaml": DEFINITION}, 4)
    fetch_now(Benchmark.objects.get().project)
    files = alice.get("projects/server/definition-files").json()
    imported = alice.post("projects/server/imports", {"path": ".pitwall.yaml"})

    assert files == {"commit": sha, "paths": [".pitwall.yaml"]}
    assert imported.status_code == 201
    shown = imported.json()
    assert (shown["benchmark"], shown["commit"], shown["path"]) == ("server", sha, ".pitwall.yaml")
    rows = alice.get("benchmarks").json()["benchmarks"]
    listed = {each["benchmark"]: each["repository_path"] for each in rows}
    assert listed == {"hello": "", "server": ".pitwall.yaml"}
    kept = alice.post("benchmarks/server/server/definitions", {"source": DEFINITION})
    assert kept.status_code == 409


def test_selected_cases_of_one_commit_are_planned_and_started(world, alice):
    project = Benchmark.objects.get().project
    make_definition(world.personas.alice, project, slug="many", source=MATRIX)
    wanted = world.run_body(
        benchmark="many", contenders=[], cases="connections == 2 and size == 's'"
    )
    plan = alice.post("runs/plan", wanted).json()

    assert (len(plan["cases"]), plan["cases_in_all"], plan["trials"]) == (2, 12, 4)
    assert [case["unsupported"] for case in plan["cases"]] == ["", "nobody has it any more"]
    assert (plan["seconds"], plan["contenders"], plan["definition_is_new"]) == (6, [], False)
    assert Run.objects.count() == 0

    started = alice.post("runs", wanted)
    assert started.status_code == 201
    shown = started.json()
    assert (shown["cases"], shown["pairwise"], shown["contenders"]) == (
        "connections == 2 and size == 's'", False, [],
    )  # fmt: skip
    fewer = alice.post("runs/plan", {**wanted, "cases": "connections < 3", "pairwise": True})
    assert len(fewer.json()["cases"]) == 8


def test_an_invalid_expression_is_refused_at_its_field(world, alice):
    refused = alice.post("runs", world.run_body(cases="speed > 1"))

    assert (refused.status_code, refused.json()["field"]) == (422, "cases")


def test_the_catalogue_is_listed(world, alice):
    suites = {each["suite"]: each for each in alice.get("suites").json()["suites"]}

    assert suites["hello"]["review"]["valid"]
    assert "version: 1" in suites["hello"]["source"]


def test_viewers_read_but_do_not_change_definitions(world, bob):
    assert bob.get(VERSIONS).status_code == 200
    assert bob.post(VERSIONS, {"source": MATRIX}).status_code == 403
    assert bob.post("projects/server/imports", {"path": ".pitwall.yaml"}).status_code == 403
    assert bob.post("runs/plan", world.run_body()).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("get", VERSIONS, None),
        ("get", f"{VERSIONS}/1", None),
        ("post", VERSIONS, {"source": DEFINITION}),
        ("get", "projects/server/definition-files", None),
        ("post", "projects/server/imports", {"path": ".pitwall.yaml"}),
    ],
)
def test_definitions_are_hidden_from_strangers(world, mallory, method, path, body):
    answer = mallory.get(path) if method == "get" else mallory.post(path, body)
    assert answer.status_code == 404
