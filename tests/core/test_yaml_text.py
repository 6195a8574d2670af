"""YAML of others costs what it says: aliases of aliases are counted before they are made."""

import pytest

from orchestrator.benchmarks.spec import parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.yaml_text import parse_yaml
from orchestrator.reports import report_spec

DOUBLED = "\n".join(f"b{n}: &b{n} [*b{n - 1}, *b{n - 1}]" for n in range(1, 60))
MERGED = "\n".join(f"b{n}: &b{n} {{<<: [*b{n - 1}, *b{n - 1}]}}" for n in range(1, 60))


def test_aliases_and_merges_are_read() -> None:
    text = "a: &a {x: 1, y: [2]}\nb: *a\nc: {<<: *a, x: 3}\n"
    one = {"x": 1, "y": [2]}
    assert parse_yaml(text) == {"a": one, "b": one, "c": {"x": 3, "y": [2]}}
    assert parse_yaml("") is None


@pytest.mark.parametrize("bomb", [f"b0: &b0 [1]\n{DOUBLED}", f"b0: &b0 {{x: 1}}\n{MERGED}"])
def test_a_text_that_expands_exponentially_is_refused(bomb: str) -> None:
    with pytest.raises(ValueError, match="more than 200\u202f000 values"):
        parse_yaml(bomb)
    for read in (parse, report_spec.parse):
        with pytest.raises(InvalidRequestError, match="more than 200\u202f000 values"):
            read(f"version: 1\n{bomb}")


@pytest.mark.parametrize("text", [r'title: "a\0"', r'title: "a\ud800"', r'"\u0000": 1'])
def test_characters_that_the_database_cannot_store_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"NUL|surrogate"):
        parse_yaml(text)
    with pytest.raises(InvalidRequestError, match=r"NUL|surrogate"):
        parse(text)


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {<<: *a}", "[" * 2_000])
def test_recursive_structures_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"refers to a value that contains it|too deeply"):
        parse_yaml(text)
