"""A definition's text is judged whole: what it comes to, or where it is wrong."""

import pytest

from orchestrator.benchmarks.places import find_line
from orchestrator.benchmarks.review import Fault, Review, review
from orchestrator.benchmarks.spec import parse
from orchestrator.benchmarks.versions import compare_cases, compute_diff
from tests.runs.test_choosing_cases import MATRIX
from tests.support.factories import DEFINITION

YAML = """\
a:
  b: [1, 2,
      3]
  c.d:
    - x: 1
    - y: 2
  c: {d: 5}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a", 1),
        ("a.b", 2),
        ("a.b[0]", 2),
        ("a.b[2]", 3),
        ("a.b[9]", 2),
        ("a.c.d[1].y", 6),
        ("a.c.d[1].z", 6),
        ("a.c", 7),
        ("z", None),
        ("", None),
    ],
)
def test_review_finds_the_line_of_a_path_or_the_nearest_one(path: str, line: int | None) -> None:
    assert find_line(YAML, path) == line


@pytest.mark.parametrize(
    ("old", "new", "path", "line", "words"),
    [
        ("duration_s: 0.6", "duration_s: soon", "load.duration_s", 9, "expected a valid number"),
        ("connections: [4]", "connections: [{}]", "matrix.connections[0]", 12, "expected"),
        ("rounds: 5", "rounds: [", "", 15, "not valid YAML"),
        ("path: /hello\n  conn", "rat: 5\n  conn", "load.rat", 7, "rat; did you mean rate?"),
        ("rounds: 5", "speed: 5", "speed", 13, "unknown field speed; check its spelling"),
        (
            "rounds: 5",
            "rounds: 5\nrounds: 6",
            "",
            14,
            "the key rounds is given twice; first in line 13",
        ),
        ("[4]", "[4, 8, 4.0]", "matrix.connections[2]", 12, "4 is also the value connections[0]"),
        ("[4]", "[4, null]", "matrix.connections[1]", 12, "null is not supported here"),
        (', "{port}"', "", "subject.start", 4, "use {port} in start or env, or give a fixed port"),
        ("/hello\n  conn", "/{conection}\n  conn", "load.path", 7, "did you mean {connections}?"),
        ("/hello\n  conn", "/{size}\n  conn", "load.path", 7, "Literal braces are %7B and %7D"),
        ("title: Hello\n", "", "title", None, "missing"),
    ],
)
def test_review_names_path_line_and_expectation(
    old: str, new: str, path: str, line: int | None, words: str
) -> None:
    assert old in DEFINITION
    fault = review(DEFINITION.replace(old, new))

    assert isinstance(fault, Fault)
    assert (fault.path, fault.line) == (path, line)
    assert words in fault.expectation
    marked = [each.number for each in fault.excerpt if each.wrong]
    assert set(marked) <= {line}
    assert len(fault.excerpt) <= 5


def test_review_reports_all_faults_at_once() -> None:
    source = DEFINITION.replace("title", "titel").replace("rounds: 5", "rounds: five\nspeed: 5")
    fault = review(source.replace("/hello", "hello"))

    assert isinstance(fault, Fault)
    found = {each.path: (each.line, each.expectation) for each in (fault, *fault.others)}
    assert found == {
        "titel": (2, "unknown field titel; did you mean title?"),
        "speed": (14, "unknown field speed; check its spelling and position."),
        "load.path": (7, "String should match pattern '^/', got 'hello'"),
        "subject.ready.path": (5, "String should match pattern '^/', got 'hello'"),
        "rounds": (
            13, "expected a valid integer, unable to parse string as an integer, got 'five'",
        ),
    }  # fmt: skip


def test_equal_values_and_unknown_words_are_reported_together() -> None:
    source = DEFINITION.replace("[4]", "[4, 4]").replace("  path: /hello", '  path: "/{size}"')
    fault = review(source)

    assert isinstance(fault, Fault)
    assert [each.path for each in (fault, *fault.others)] == ["matrix.connections[1]", "load.path"]


def test_review_reports_cases_duration_tools_and_requirements() -> None:
    source = MATRIX.replace(
        "labels: {language: rust}", "labels: {language: rust}, requires: {cargo: '>=1.70'}"
    )
    report = review(source + "requires: {git: '*'}\n")

    assert isinstance(report, Review)
    assert (len(report.cases), len(report.unsupported)) == (12, 6)
    assert report.unsupported[0][1] == "nobody has it any more"
    # Six cases of 2 s and 1 s for start and stop.
    assert report.round_s == pytest.approx(18)
    assert report.tools == {"oha": 6}
    assert report.requires == {"cargo": {">=1.70": ["quick"]}, "git": {"*": []}}


def test_review_shows_what_changed_line_by_line() -> None:
    after = DEFINITION.replace("rounds: 5", "rounds: 7").replace("[4]", "[4, 8]")
    lines = compute_diff(DEFINITION, after)
    changed = [(each.sign, each.old, each.new, each.text) for each in lines if each.sign in "+-"]

    assert changed == [
        ("-", 12, None, "  connections: [4]"),
        ("-", 13, None, "rounds: 5"),
        ("+", None, 12, "  connections: [4, 8]"),
        ("+", None, 13, "rounds: 7"),
    ]
    assert (lines[0].sign, lines[0].old, lines[0].new) == ("@", 9, 9)
    assert compute_diff(DEFINITION, DEFINITION) == []


def test_review_lists_cases_that_keep_their_history() -> None:
    after = DEFINITION.replace("[4]", "[4, 8]")
    changes = compare_cases(parse(DEFINITION), parse(after))

    assert (changes.added, changes.removed, changes.kept) == (("connections 8",), (), 1)
    assert compare_cases(parse(after), parse(DEFINITION)).removed == ("connections 8",)
