"""Every command prints one JSON document with `--json`, as docs/schemas/command-line.json says."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cli.pitwall.arguments import build_parser
from orchestrator.api.command_line_schema import (
    DOCUMENTS,
    build_command_line_schema,
    render_command_line_schema,
)
from orchestrator.benchmarks.projects import create_project
from orchestrator.measurements.ingest import forget_cached
from orchestrator.reports.saved_reports import save_report
from tests.cli.test_builds import build_run_args
from tests.cli.test_files import working
from tests.cli.test_local import HELLO, SHORT, local
from tests.support.engine import server
from tests.support.factories import make_repository
from tests.support.fetches import fetch_now
from tests.support.histories import build_data_js
from tests.support.programs import tool
from tests.support.trials import ERRORS, invalidate

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "docs" / "schemas" / "command-line.json"
REPORT = (
    "{version: 1, title: Fast, benchmark: server/hello, "
    "tables: [{rows: [commit], columns: [{metric: latency.p50}]}]}"
)


def build_strict_schema(command: str) -> dict:
    """The published schema of a command's document, which here rejects unknown fields as well."""
    schema = build_command_line_schema()
    for model in schema["$defs"].values():
        if "properties" in model:
            model["additionalProperties"] = False
    return {"$schema": schema["$schema"], "$ref": f"#/$defs/{command.replace(' ', '%20')}",
            "$defs": schema["$defs"]}  # fmt: skip


def check_document(command: str, text: str) -> dict:
    """Return the document after a check of its form."""
    document = json.loads(text)
    faults = Draft202012Validator(build_strict_schema(command)).iter_errors(document)
    assert [f"{each.json_path}: {each.message}" for each in faults] == []
    return document


def iter_commands(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, set]]:
    """Yield each command with its options."""
    nested = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for action in nested:
        for word, child in action.choices.items():
            yield from iter_commands(child, f"{name} {word}".strip())
    if not nested:
        yield name, {option for each in parser._actions for option in each.option_strings}


def test_every_command_has_the_option_and_a_published_document() -> None:
    commands = dict(iter_commands(build_parser()))
    assert set(commands) == set(DOCUMENTS) - {"error"}
    assert all("--json" in options for options in commands.values())
    assert render_command_line_schema() == SNAPSHOT.read_text(), "run make generate"
    Draft202012Validator.check_schema(json.loads(SNAPSHOT.read_text()))


def prepare_words(world, tmp_path) -> dict[str, list[list[str]]]:
    """Command → the words that follow it, for each form of its document."""
    run = world.measure_run(1000, 800)
    make_repository(tmp_path / "shop", [server()])
    project = create_project(
        member=world.alice, slug="shop", name="Shop", repository_url=str(tmp_path / "shop")
    )
    fetch_now(project)
    save_report(member=world.alice, source=REPORT, slug="fast")
    line = {"benchmark": "hello", "host": "ci-7", "commit": world.shas[0], "id": "one",
            "parameters": {"connections": 4}, "metrics": {"requests.rate": 91250.5}}  # fmt: skip
    results, history = tmp_path / "results.jsonl", tmp_path / "data.js"
    results.write_text(json.dumps(line))
    history.write_bytes(build_data_js(world.shas[:2]))
    backfill = ["--benchmark", "hello", "--hosts", "here", "--last", "1", "--again"]
    of_history = ["--as-history", "--project", "server", str(history)]
    return {
        "run": [build_run_args(world)[1:]],
        "wait": [[str(run.pk)]],
        "backfill": [backfill, [*backfill, "--start"], [*backfill[:-1], "--start"]],
        "compare": [[str(run.pk)]],
        "propose": [["shop", "--ref", "main"], ["server"]],
        "hosts": [[]],
        "reserve": [["here", "--for", "2h", "--reason", "debugging"], ["here", "--end"]],
        "import": [["--project", "server", str(results)], [*of_history, "--preview"], of_history],
        "export trials": [[str(run.pk)]],
        "export report": [["fast"]],
        "export definition": [["server/hello"]],
        "host setup": [["--print", "--user", "bench"]],
    }


def test_every_command_prints_its_document(pitwall, world, tmp_path):
    forget_cached()
    words = prepare_words(world, tmp_path)
    assert set(words) == set(DOCUMENTS) - {"error", "local"}
    for command, forms in words.items():
        for more in forms:
            with working():
                done = pitwall(*command.split(), *more, "--json")
            assert done.status == (1 if command == "compare" else 0), (command, done.err)
            check_document(command, done.out)


def test_the_document_of_a_comparison_has_the_judgement(pitwall, world):
    done = pitwall("compare", str(world.measure_run(1000, 800).pk), "--json")
    document = check_document("compare", done.out)
    assert (done.status, document["build"]["status"], document["verdict"]) == (1, 1, "regressed")


@pytest.mark.engine
@pytest.mark.parametrize("baseline", [[], ["--baseline", "HEAD~1"]], ids=["alone", "compared"])
def test_a_local_measurement_prints_its_document(tmp_path, baseline):
    folder = tmp_path / "repository"
    make_repository(folder, [{"server.py": HELLO}, {"server.py": HELLO, "bench.yaml": SHORT}])
    done = local(
        folder, "--json", "--rounds", "1", "--shared", *baseline, PITWALL_OHA=str(tool("oha"))
    )
    document = check_document("local", done.stdout)
    assert [each["case"]["label"] for each in document["cases"]] == ["connections 4"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hosts", "--json", "--colour"], "unrecognized arguments: --colour"),
        (["compare", "--json", "--format", "csv", "-b", "hello"], "exclude each other"),
        (["run", "--json"], "the following arguments are required"),
        (["compare", "--json"], "name a run"),
        (["export", "report", "nosuch", "--json"], "no report"),
        (["export", "report", "x", "--json", "-o", "file"], "without --output"),
    ],
)
def test_an_error_is_a_document_with_the_exit_status(pitwall, world, words, message):
    done = pitwall(*words)
    error = check_document("error", done.out)["error"]
    assert message in error["message"]
    assert (done.status, error["exit_status"]) == (2, 2)
    assert message in done.err


def test_an_error_without_the_option_is_no_document(pitwall, world):
    done = pitwall("run")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("usage: pitwall run")


def test_a_run_that_ends_without_a_result_is_part_of_the_error(pitwall, world):
    run = invalidate(world.measure_run(1000, 1000), ERRORS)
    done = pitwall("wait", str(run.pk), "--json")
    error = check_document("error", done.out)["error"]
    assert (done.status, error["exit_status"]) == (4, 4)
    assert error["run"]["state"] == "no_data"
    assert [each["reason"] for each in error["failed_cases"]] == [ERRORS, ERRORS]
