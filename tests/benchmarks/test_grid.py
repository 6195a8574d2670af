"""What is chosen in the grid of cases is what its expression chooses."""

from itertools import product
from random import Random
from textwrap import dedent

import pytest

from orchestrator.benchmarks.choice import choose
from orchestrator.benchmarks.grid import (
    Grid,
    GridSelection,
    build_expression,
    build_grid,
    find_picked,
)
from orchestrator.benchmarks.matrix import CaseSpec, expand
from orchestrator.benchmarks.spec import Spec, parse

SOURCE = dedent(
    """\
    version: 1
    title: Many
    subject:
      start: ["{python}", server.py, --port, "{port}"]
    load: {connections: "{connections}", duration_s: 2, warmup_s: 0}
    matrix:
      tls: [false, true]
      system: ["it's", quick, old, lost]
      connections: [1, 2, 3]
      size: [s]
    options:
      system:
        lost: {unsupported: nobody has it any more}
    exclude:
      - {system: old, connections: 3}
    """
)


@pytest.fixture(scope="module")
def spec() -> Spec:
    return parse(SOURCE)


@pytest.fixture(scope="module")
def cases(spec: Spec) -> list[CaseSpec]:
    return expand(spec)


@pytest.fixture(scope="module")
def grid(spec: Spec, cases: list[CaseSpec]) -> Grid:
    return build_grid(spec, cases)


def test_the_largest_axes_are_rows_and_columns_of_the_grid(grid: Grid) -> None:
    assert grid.rows is not None
    assert grid.columns is not None
    assert (grid.rows.name, grid.columns.name) == ("system", "connections")
    assert [axis.name for axis in grid.others] == ["tls"]
    assert len(grid.cells) == 11
    assert (2, 2) not in grid.cells
    assert grid.unsupported == {(3, 0), (3, 1), (3, 2)}


def _picked(cells: set[tuple[int, int]], tls: set[int]) -> GridSelection:
    return GridSelection(cells=frozenset(cells), values={"tls": frozenset(tls)})


@pytest.mark.parametrize(
    ("cells", "tls", "expected"),
    [
        ({(0, 0), (0, 1), (0, 2)}, {0, 1}, 'system == "it\'s"'),
        ({(1, 1)}, {1}, "tls == True and system == 'quick' and connections == 2"),
        ({(0, 0), (1, 0), (2, 0), (3, 0)}, {0, 1}, "connections == 1"),
        # What the definition leaves out does not keep a row from being whole.
        ({(2, 0), (2, 1)}, {0, 1}, "system == 'old'"),
        (
            {(0, 0), (1, 2)},
            {0},
            'tls == False and (system == "it\'s" and connections == 1 or '
            "system == 'quick' and connections == 3)",
        ),
    ],
)
def test_the_grid_writes_a_selection_as_an_expression(
    grid: Grid, cells: set[tuple[int, int]], tls: set[int], expected: str
) -> None:
    assert build_expression(grid, _picked(cells, tls)) == expected


def test_a_selection_of_all_cases_needs_no_expression(grid: Grid) -> None:
    assert build_expression(grid, grid.everything) == ""


def test_any_expression_of_the_grid_selects_its_cases(
    spec: Spec, cases: list[CaseSpec], grid: Grid
) -> None:
    draw = Random(7)
    for _ in range(60):
        cells = set(draw.sample(sorted(grid.cells), draw.randint(1, 11)))
        picked = _picked(cells, set(draw.sample([0, 1], draw.randint(1, 2))))
        chosen = choose(spec, cases, build_expression(grid, picked))
        expected = {
            (row, column, tls) for (row, column), tls in product(picked.cells, picked.values["tls"])
        }
        assert len(chosen) == len(expected)
        assert find_picked(grid, cases, chosen) == picked


def test_an_expression_that_no_grid_can_show_has_no_grid(
    spec: Spec, cases: list[CaseSpec], grid: Grid
) -> None:
    chosen = choose(spec, cases, "tls == True or connections == 1")
    assert find_picked(grid, cases, chosen) is None


def test_a_single_axis_is_selected_by_its_values(spec: Spec) -> None:
    one = parse(SOURCE.replace("[false, true]", "[true]").replace("[1, 2, 3]", "[3]"))
    every = expand(one)
    grid = build_grid(one, every)
    assert (grid.rows, [axis.name for axis in grid.others]) == (None, ["system"])
    picked = GridSelection(cells=frozenset(), values={"system": frozenset({0, 1})})
    chosen = choose(one, every, build_expression(grid, picked))
    assert [case.parameters["system"] for case in chosen] == ["it's", "quick"]
