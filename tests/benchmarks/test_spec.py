"""A wrong definition is refused with the path into the file and what was expected there."""

import pytest

from orchestrator.benchmarks.matrix import expand, fill, load_of
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
    ("title: Hello", "titel: Hello", "titel", "no such field"),
    ("title: Hello\n", "", "title", "missing"),
    ("version: 1", "version: 2", "version", "expected 1, got 2"),
    ('"{port}"]', '"{prot}"]', "subject.start[3]", "{prot}"),
    ("path: /hello\n  conn", "path: hello\n  conn", "load.path", "pattern"),
    ("duration_s: 0.6", "duration_s: 1\n  body: a\n  body_bytes: 1", "load", "not both"),
    ("duration_s: 0.6", "duration_s: 1\n  body_bytes: 65537", "load.body_bytes", "65536"),
    ('connections: "{connections}"', "connections: 0", "load.connections", "greater than"),
]


@pytest.mark.parametrize(("old", "new", "path", "words"), WRONG)
def test_it_names_the_path_and_the_expectation(old: str, new: str, path: str, words: str) -> None:
    assert old in DEFINITION
    with pytest.raises(InvalidRequestError) as caught:
        parse(DEFINITION.replace(old, new, 1))
    assert caught.value.field == path
    assert str(caught.value).startswith(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("source", ["", "- 1", "a: [", "\t", "42", "a: &x [*x]", "!!python/none x"])
def test_it_refuses_what_is_no_mapping(source: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse(source)


def test_it_refuses_a_huge_file() -> None:
    with pytest.raises(InvalidRequestError, match="KiB"):
        parse("#" * (MAX_SOURCE_BYTES + 1))


def test_it_expands_the_matrix_less_what_is_excluded() -> None:
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


def test_it_keeps_the_key_of_a_case_when_the_definition_changes_elsewhere() -> None:
    before = expand(parse(DEFINITION))[0]
    after = expand(parse(DEFINITION.replace("connections: [4]", "connections: [2, 4]")))[1]
    assert before.key == after.key


def test_it_fills_a_case_into_the_load_and_leaves_the_agents_words() -> None:
    spec = parse(DEFINITION)
    assert load_of(spec, {"connections": 4}).connections == 4
    assert fill("{port} {connections}", {"connections": 4}) == "{port} 4"


def test_it_names_the_axis_whose_value_does_not_fit() -> None:
    spec = parse(DEFINITION.replace("connections: [4]", "connections: [many]"))
    with pytest.raises(InvalidRequestError, match="many"):
        load_of(spec, {"connections": "many"})


def test_it_refuses_when_everything_is_excluded() -> None:
    source = DEFINITION + "exclude:\n  - {connections: 4}\n"
    with pytest.raises(InvalidRequestError, match="excluded"):
        expand(parse(source))
