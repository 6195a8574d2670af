"""The graph of commits, from letters: `M` merges `x` and `y` into the main line."""

from datetime import UTC, datetime, timedelta

from orchestrator.benchmarks.graph import (
    Node,
    find_ancestry_path,
    find_main_path,
    follow_first_parents,
    map_parents,
    merge_base,
    sort_topologically,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def graph(*lines: str) -> list[Node]:
    """`"C: B y"` is a commit C with the parents B and y; dates are in the order given."""
    nodes = []
    for number, line in enumerate(lines):
        sha, _, parents = line.partition(":")
        when = START + timedelta(minutes=number)
        nodes.append(Node(sha=sha, parents=tuple(parents.split()), committed_at=when))
    return nodes


#: A - B - C - M - D, with x and y from B merged at M.
MERGED = graph("A:", "B: A", "x: B", "C: B", "y: x", "M: C y", "D: M")


def test_commits_are_ordered_by_parents_and_then_by_date() -> None:
    assert sort_topologically(list(reversed(MERGED))) == ["A", "B", "x", "C", "y", "M", "D"]


def test_a_clock_that_was_wrong_does_not_put_a_child_before_its_parent() -> None:
    wrong = graph("C: B", "B: A", "A:")
    assert sort_topologically(wrong) == ["A", "B", "C"]


def test_an_unknown_parent_ends_the_graph() -> None:
    assert sort_topologically(graph("B: A", "C: B")) == ["B", "C"]
    assert follow_first_parents(map_parents(graph("B: A", "C: B")), "C") == ["B", "C"]
    assert follow_first_parents({}, "C") == []


def test_the_main_line_skips_merged_commits() -> None:
    parents = map_parents(MERGED)
    assert follow_first_parents(parents, "D") == ["A", "B", "C", "M", "D"]
    assert find_main_path(parents, "B", "D") == ["C", "M", "D"]
    assert find_main_path(parents, "x", "D") == []


def test_commits_between_two_are_descendants_of_one_and_ancestors_of_the_other() -> None:
    assert find_ancestry_path(MERGED, "B", "M") == ["x", "C", "y", "M"]
    assert find_ancestry_path(MERGED, "x", "D") == ["y", "M", "D"]
    assert find_ancestry_path(MERGED, "D", "B") == []


def test_the_fork_point_of_a_branch_is_found() -> None:
    assert merge_base(MERGED, "C", "y") == "B"
    assert merge_base(MERGED, "y", "D") == "y"
    assert merge_base(graph("A:", "B:"), "A", "B") is None


def test_thousands_of_commits_are_ordered_quickly() -> None:
    long = graph("0:", *(f"{n}: {n - 1}" for n in range(1, 5000)))
    assert find_ancestry_path(long, "0", "4999")[-1] == "4999"
