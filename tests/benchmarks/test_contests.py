"""The contest axis of a definition: its errors, and the cases that are measured together."""

import pytest

from orchestrator.benchmarks.choice import choose
from orchestrator.benchmarks.matrix import expand, select_measured_part
from orchestrator.benchmarks.review import Fault, review
from orchestrator.benchmarks.spec import parse
from orchestrator.runs.contest_rules import select_pairwise_contests
from orchestrator.runs.trial_order import group_cases

TEXT = """\
version: 1
title: Servers
subject: {start: ["{python}", server.py, "{server}", --port, "{port}"]}
load: {connections: "{connections}", duration_s: 1, warmup_s: 0}
matrix:
  server: [quick, slow, old]
  connections: [4, 8]
exclude: [{server: old, connections: 8}]
"""
CONTEST = TEXT + "contest: server\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT + "contest: servers\n", "servers is not an axis of the matrix; there are: server, c"),
        (CONTEST.replace("[quick, slow, old]", "[old]"), "the axis server has a single value"),
        (TEXT + "contest: [server]\n", "expected a valid string"),
    ],
)
def test_a_contest_needs_an_axis_with_several_values(text: str, words: str) -> None:
    fault = review(text)
    assert isinstance(fault, Fault)
    assert (fault.path, fault.line) == ("contest", 9)
    assert words in fault.expectation


def test_an_error_of_the_contest_is_reported_with_the_others() -> None:
    fault = review(TEXT.replace("[4, 8]", "[4, 8, 8.0]") + "contest: servers\n")
    assert isinstance(fault, Fault)
    assert {fault.path, *(each.path for each in fault.others)} == {
        "contest", "matrix.connections[2]",
    }  # fmt: skip


def test_cases_that_differ_only_in_the_contest_are_one_group() -> None:
    spec = parse(CONTEST)
    cases = expand(spec)
    groups = [[cases[at].label for at in group] for group in group_cases(spec, cases)]
    assert groups == [
        ["server quick, connections 4", "server slow, connections 4", "server old, connections 4"],
        ["server quick, connections 8", "server slow, connections 8"],
    ]
    plain = parse(TEXT)
    assert group_cases(plain, cases) == [[0], [1], [2], [3], [4]]


def test_fewer_cases_keep_whole_contests() -> None:
    text = CONTEST.replace("exclude:", "  size: [1, 2]\nexclude:").replace(
        '"{server}"', '"{server}", "{size}"'
    )
    spec = parse(text)
    cases = choose(spec, expand(spec), "")
    kept = list(select_pairwise_contests(spec, cases))
    groups = [[kept[at].parameters["server"] for at in one] for one in group_cases(spec, kept)]
    assert all(each[:2] == ["quick", "slow"] for each in groups)
    assert {(case.parameters["connections"], case.parameters["size"]) for case in kept} == {
        (4, 1), (4, 2), (8, 1), (8, 2),
    }  # fmt: skip


def test_a_contest_changes_no_history() -> None:
    before, after = parse(TEXT), parse(CONTEST)
    parameters = expand(before)[0].parameters
    assert select_measured_part(before, parameters) == select_measured_part(after, parameters)
    assert "contest" not in before.model_dump(mode="json")
    assert parse(CONTEST).model_dump(mode="json")["contest"] == "server"
