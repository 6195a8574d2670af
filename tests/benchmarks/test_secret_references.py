"""Definitions name secrets of the project as environment variables, and nowhere else."""

from textwrap import dedent

import pytest

from orchestrator.benchmarks.fields import SecretReference
from orchestrator.benchmarks.matrix import expand, fill_env, resolve_cells
from orchestrator.benchmarks.secret_names import list_secret_names
from orchestrator.benchmarks.spec import from_data, parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import hash_value

DEFINITION = dedent(
    """\
    version: 1
    title: Shop
    subject:
      build: [["make"]]
      start: ["./server", "--port", "{port}"]
      env: {TOKEN: {secret: STRIPE_KEY}, MODE: "{mode}"}
    services:
      backend:
        start: ["./backend", "{port}"]
        env: {PASSWORD: {secret: DB_PASSWORD}}
    load:
      tool: script
      command: ["./load", "{port}"]
      env: {TOKEN: {secret: LOAD_TOKEN}, MODE: "{mode}"}
      duration_s: 1
    matrix: {mode: [plain, paid]}
    options:
      mode:
        paid: {subject: {env: {TOKEN: {secret: PAID_KEY}}}}
    """
)
ONLY_VARIABLES = "a secret can only be the value of an environment variable"


def test_each_kind_of_process_can_get_a_secret() -> None:
    spec = parse(DEFINITION)
    plain, paid = resolve_cells(spec, [case.parameters for case in expand(spec)])
    assert list_secret_names([plain]) == ["DB_PASSWORD", "LOAD_TOKEN", "STRIPE_KEY"]
    # The option of a case replaces the secret.
    assert list_secret_names([paid]) == ["DB_PASSWORD", "LOAD_TOKEN", "PAID_KEY"]
    assert plain.subject.env["TOKEN"] == SecretReference(secret="STRIPE_KEY")
    assert fill_env(plain.subject.env, {"mode": "plain"}) == {
        "TOKEN": {"secret": "STRIPE_KEY"}, "MODE": "plain",
    }  # fmt: skip


def test_a_stored_definition_keeps_its_references() -> None:
    spec = parse(DEFINITION)
    again = from_data(spec.model_dump(mode="json"))
    assert again == spec
    assert hash_value(again.model_dump(mode="json")) == hash_value(spec.model_dump(mode="json"))


def test_a_definition_without_load_env_keeps_its_digest() -> None:
    source = "version: 1\ntitle: t\nsubject: {start: [s, '{port}']}\nload: {duration_s: 1}\n"
    assert "env" not in parse(source).model_dump(mode="json")["load"]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"--port"', "{secret: STRIPE_KEY}", "subject.start[1]"),
        ('["make"]', "[make, {secret: STRIPE_KEY}]", "subject.build[0][1]"),
        ("duration_s: 1", "duration_s: 1\n  path: {secret: STRIPE_KEY}", "load.path"),
        (
            "duration_s: 1",
            "duration_s: 1\n  headers: {Authorization: {secret: STRIPE_KEY}}",
            "load.headers.Authorization",
        ),
        ("duration_s: 1", "duration_s: 1\n  body: {secret: STRIPE_KEY}", "load.body"),
        (
            "matrix:",
            "checks: [{headers: {x: {secret: STRIPE_KEY}}}]\nmatrix:",
            "checks[0].headers.x",
        ),
        ("matrix:", "checks: [{text: {secret: STRIPE_KEY}}]\nmatrix:", "checks[0].text"),
        ("plain, paid", "{secret: STRIPE_KEY}, paid", "matrix.mode[0]"),
        ("build:", "working_dir: {secret: STRIPE_KEY}\n  build:", "subject.working_dir"),
        ("build:", "ready: {secret: STRIPE_KEY}\n  build:", "subject.ready.secret"),
        ("build:", "secret: STRIPE_KEY\n  build:", "subject.secret"),
    ],
)
def test_a_secret_elsewhere_is_refused_with_its_place(old: str, new: str, field: str) -> None:
    assert old in DEFINITION
    with pytest.raises(InvalidRequestError) as refused:
        parse(DEFINITION.replace(old, new, 1))
    faults = dict(refused.value.faults)
    assert faults[field].startswith(ONLY_VARIABLES), faults
    assert "env: {TOKEN: {secret: NAME}}" in faults[field]


@pytest.mark.parametrize(
    ("value", "field", "problem"),
    [
        ("{secret: 1st}", "subject.env.TOKEN.secret", "pattern"),
        ("{secret: ''}", "subject.env.TOKEN.secret", "pattern"),
        ("{secret: [A]}", "subject.env.TOKEN.secret", "valid string"),
        ("{secrets: A}", "subject.env.TOKEN.secrets", "did you mean secret?"),
        ("{secret: A, default: b}", "subject.env.TOKEN.default", "unknown field default"),
        ("5", "subject.env.TOKEN", "valid string"),
        ("{}", "subject.env.TOKEN.secret", "missing"),
    ],
)
def test_a_wrong_reference_is_refused_with_its_place(value: str, field: str, problem: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse(DEFINITION.replace("{secret: STRIPE_KEY}", value, 1))
    faults = dict(refused.value.faults)
    assert problem in faults[field], faults


def test_only_a_script_has_variables_of_a_load_tool() -> None:
    source = DEFINITION.replace("  tool: script\n", "").replace(
        '  command: ["./load", "{port}"]\n', ""
    )
    with pytest.raises(InvalidRequestError, match="only a script has environment variables"):
        parse(source)
