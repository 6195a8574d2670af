"""Definitions for typical repositories, which come with Pitwall."""

import pytest

from orchestrator.benchmarks.examples import load_example, load_examples
from orchestrator.core.errors import NotFoundError


def test_examples_are_ordered_by_title() -> None:
    titles = [example.title for example in load_examples()]
    assert len(set(titles)) == len(titles) >= 10
    assert titles == sorted(titles, key=str.lower)


def test_an_example_is_found_by_the_name_of_its_file() -> None:
    assert load_example("rust-workspace").title == "Rust workspace"
    assert load_example("rust-workspace") in load_examples()


def test_an_unknown_example_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="there is no example cobol"):
        load_example("cobol")
