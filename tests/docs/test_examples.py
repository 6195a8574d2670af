"""The examples of docs/examples are definitions, and their list describes them."""

import re

import pytest

from orchestrator.benchmarks.examples import FOLDER, Example, load_examples
from orchestrator.benchmarks.load_specs import check_loads
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.spec import check_start, parse
from tests.support.examples import GROUPS, LONG

EXAMPLES = load_examples()
README = (FOLDER / "README.md").read_text()


def get_slug(example: Example) -> str:
    return example.slug


@pytest.mark.parametrize("example", EXAMPLES, ids=get_slug)
def test_an_example_is_a_complete_definition(example: Example) -> None:
    spec = parse(example.source)
    check_loads(spec)
    check_start(spec)
    assert 1 <= len(expand(spec)) <= 4
    # On one host and on several.
    assert spec.unbound == ()


@pytest.mark.parametrize("example", EXAMPLES, ids=get_slug)
def test_an_example_begins_with_its_repository_and_the_changes(example: Example) -> None:
    comment, _, rest = example.source.partition("version: 1\n")
    lines = comment.splitlines()
    assert all(line.startswith("#") for line in lines)
    assert lines[0].startswith("# For ")
    assert any(line.startswith("# Change: ") for line in lines)
    assert rest.startswith("title: ")


def test_the_list_names_each_file_with_its_programs() -> None:
    rows = re.findall(
        r"^\| \[(.+?)\]\((.+?)\) \| [^|]+ \| ([^|]+) \| [^|]+ \|$", README, re.MULTILINE
    )
    assert [target for _, target, _ in rows] == sorted(path.name for path in FOLDER.glob("*.yaml"))
    for name, target, programs in rows:
        assert name == target
        spec = parse((FOLDER / target).read_text())
        tool = set() if spec.load.tool == "script" else {spec.load.tool}
        assert set(re.findall(r"`(.+?)`", programs)) == {*spec.requires, *tool}


def test_the_folder_has_only_examples_and_their_list() -> None:
    names = {path.name for path in FOLDER.iterdir()}
    assert names == {"README.md", *(f"{example.slug}.yaml" for example in EXAMPLES)}


def test_each_example_is_measured_by_a_test() -> None:
    measured = [*LONG, *(slug for group in GROUPS for slug in group)]
    assert sorted(measured) == sorted(example.slug for example in EXAMPLES)
