"""The published JSON Schema takes what Pitwall takes, refuses plain mistakes, and explains."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from jsonschema import Draft202012Validator

from orchestrator.benchmarks import auxiliary, limits, load, options, spec
from orchestrator.benchmarks.field_texts import TEXTS
from orchestrator.benchmarks.fields import Strict
from orchestrator.benchmarks.json_schema import build_definition_schema, render_definition_schema
from tests.runs.test_choosing_cases import MATRIX
from tests.support.factories import DEFINITION

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "docs" / "schemas" / "definition.json"
SUITES = sorted((ROOT / "agents" / "suites").glob("*/benchmark.yaml"))
PAGE = (ROOT / "docs" / "definitions.md").read_text()
EXAMPLE = PAGE.split("```yaml\n")[1].split("```")[0]
MODELS = {
    name: model
    for module in (auxiliary, limits, load, options, spec)
    for name, model in vars(module).items()
    if isinstance(model, type) and issubclass(model, Strict) and name not in ("Strict", "Process")
}


def _problems(definition: Any) -> list[str]:
    validator = Draft202012Validator(build_definition_schema())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(definition)]


def test_the_committed_schema_is_the_schema() -> None:
    assert render_definition_schema() == SNAPSHOT.read_text(), (
        "see docs/contributing.md: the schemas"
    )


def test_the_published_schema_is_valid() -> None:
    Draft202012Validator.check_schema(build_definition_schema())


def test_the_schema_is_public(db: None) -> None:
    answer = Client().get("/schemas/definition.json")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/schema+json"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.content.decode() == SNAPSHOT.read_text()


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.parent.name)
def test_the_schema_accepts_the_catalogue(path: Path) -> None:
    assert _problems(yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize("source", [DEFINITION, EXAMPLE, MATRIX])
def test_the_schema_accepts_other_definitions(source: str) -> None:
    assert _problems(yaml.safe_load(source)) == []


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("duration_s: 0.6", "duration_s: soon", "$.load.duration_s"),
        ("rounds: 5", "rouns: 5", "$"),
        ("path: /hello\n  conn", "tool: ab\n  conn", "$.load.tool"),
        ("connections: [4]", "connections: []", "$.matrix.connections"),
        ("connections: [4]", "connections: [4]\noptions: {connections: {'4': {load: {x: 1}}}}",
         "$.options.connections['4'].load"),
        ("version: 1", "version: 2", "$.version"),
    ],
)  # fmt: skip
def test_the_schema_refuses_simple_errors(old: str, new: str, where: str) -> None:
    assert old in DEFINITION
    (problem,) = _problems(yaml.safe_load(DEFINITION.replace(old, new)))
    assert problem.startswith(f"{where}: ")


@pytest.mark.parametrize("part", ["64 MiB", 67108864])
def test_the_schema_accepts_sizes_with_units_and_partial_options(part: object) -> None:
    changes = {
        "load": {"grpc": {"data": {"a": 1}}, "compression": "gzip, br"},
        "services": {"redis": {"count": 2}},
        "limits": {"target": {"memory": part}},
    }
    definition = {**yaml.safe_load(DEFINITION), "options": {"connections": {"4": changes}}}
    assert _problems(definition) == []


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_schema_describes_every_field(name: str) -> None:
    assert set(TEXTS[name]) == set(MODELS[name].model_fields)
