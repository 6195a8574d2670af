"""A wrong definition is refused with the path into the file and what was expected there."""

import pytest

from orchestrator.benchmarks.matrix import expand, fill, resolve_load
from orchestrator.benchmarks.spec import MAX_SOURCE_BYTES, parse
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import DEFINITION

WRONG = [
    ("duration_s: 0.6", "duration_s: soon", "load.duration_s", "number"),
    ("duration_s: 0.6", "duration_s: -1", "load.duration_s", "greater than 0"),
    ("duration_s: 0.6", "duration_s: 1\n  requests: 5", "load", "not both"),
    ("connections: [4]", "size: [4]", "load.connections", "{connections}"),
    ("connections: [4]", "connections: [4, [5]]", "matrix.connections[1]", "string"),
    ("connections: [4]", "port: [4]", "matrix.port", "taken"),
    ("title: Hello", "titel: Hello", "titel", "unknown field"),
    ("title: Hello\n", "", "title", "missing"),
    ("version: 1", "version: 2", "version", "expected 1, got 2"),
    ('"{port}"]', '"{prot}"]', "subject.start[3]", "{prot}"),
    ("path: /hello\n  conn", "path: hello\n  conn", "load.path", "pattern"),
    ("duration_s: 0.6", "duration_s: 1\n  body: a\n  body_bytes: 1", "load", "not both"),
    ("duration_s: 0.6", "duration_s: 1\n  body_bytes: 65537", "load.body_bytes", "65536"),
    ('connections: "{connections}"', "connections: 0", "load.connections", "greater than"),
]


@pytest.mark.parametrize(("old", "new", "path", "words"), WRONG)
def test_an_invalid_definition_is_refused_with_path_and_expectation(
    old: str, new: str, path: str, words: str
) -> None:
    assert old in DEFINITION
    with pytest.raises(InvalidRequestError) as caught:
        parse(DEFINITION.replace(old, new, 1))
    assert caught.value.field == path
    assert str(caught.value).startswith(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("source", ["", "- 1", "a: [", "\t", "42", "a: &x [*x]", "!!python/none x"])
def test_a_definition_must_be_a_mapping(source: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse(source)


def test_a_huge_definition_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="KiB"):
        parse("#" * (MAX_SOURCE_BYTES + 1))


def test_the_matrix_is_expanded_without_excluded_cases() -> None:
    source = DEFINITION.replace("connections: [4]", "connections: [4, 8]\n  size: [small, big]") + (
        "exclude:\n  - {connections: 8, size: big}\n"
    )
    cases = expand(parse(source))
    assert [case.label for case in cases] == [
        "connections 4, size small",
        "connections 4, size big",
        "connections 8, size small",
    ]
    assert len({case.key for case in cases}) == 3


def test_a_case_keeps_its_key_when_other_parts_change() -> None:
    before = expand(parse(DEFINITION))[0]
    after = expand(parse(DEFINITION.replace("connections: [4]", "connections: [2, 4]")))[1]
    assert before.key == after.key


def test_case_parameters_are_filled_into_the_load_and_agent_placeholders_stay() -> None:
    spec = parse(DEFINITION)
    assert resolve_load(spec, {"connections": 4}).connections == 4
    assert fill("{port} {connections}", {"connections": 4}) == "{port} 4"


def test_an_axis_with_an_invalid_value_is_named() -> None:
    spec = parse(DEFINITION.replace("connections: [4]", "connections: [many]"))
    with pytest.raises(InvalidRequestError, match="many"):
        resolve_load(spec, {"connections": "many"})


def test_a_matrix_without_cases_is_refused() -> None:
    source = DEFINITION + "exclude:\n  - {connections: 4}\n"
    with pytest.raises(InvalidRequestError, match="excluded"):
        expand(parse(source))
