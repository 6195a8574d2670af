"""Hundreds of cells at once say what each says alone."""

import math
from dataclasses import asdict

import numpy as np
import pytest

from orchestrator.stats.comparison import Comparison, Verdict, compare_blocks
from orchestrator.stats.many import ComparisonInput, compare_many

SAME = {"better": "higher", "margin": 0.03}


def _alone(cell: ComparisonInput) -> Comparison:
    return compare_blocks(
        cell.baseline,
        cell.contender,
        better=cell.better,
        margin=cell.margin,
        orders=cell.orders,
    )


def _random_cells(count: int, seed: int) -> list[ComparisonInput]:
    """Of 0 to 25 blocks, with noise of none to 30 %, changes up to a half, and some None.

    The order is known in most cells, and in some of them only for a part of the blocks.
    """
    generator = np.random.default_rng(seed)
    cells = []
    for _ in range(count):
        n = int(generator.integers(0, 26))
        noise = float(generator.choice([0.0, 1e-13, 0.01, 0.05, 0.3]))
        change = float(generator.choice([0.0, 0.02, 0.05, -0.5]))
        scale = 10.0 ** int(generator.integers(-6, 7))
        sides = np.exp(generator.normal([[0.0], [change]], noise, (2, n))) * scale
        before, after = (side.tolist() for side in sides)
        if n and generator.random() < 0.1:
            before[0] = None
        if n and generator.random() < 0.1:
            after[-1] = 0.0
        better = str(generator.choice(["higher", "lower"]))
        margin = float(generator.choice([0.03, 0.05, 0.1]))
        orders = generator.choice([1, -1], n).tolist() if generator.random() < 0.8 else []
        if orders and generator.random() < 0.1:
            orders[-1] = 0
        cells.append(
            ComparisonInput(
                baseline=before, contender=after, better=better, margin=margin, orders=orders
            )
        )
    return cells


def _assert_same(found: Comparison, wanted: Comparison) -> None:
    first, second = asdict(found), asdict(wanted)
    for part in ("robust", "order_effect"):
        for each in (first, second):
            numbers = each.pop(part) or {"none": None}
            each |= {f"{part} {key}": value for key, value in numbers.items()}
    assert first.keys() == second.keys()
    for key, value in first.items():
        other = second[key]
        if isinstance(value, float) and isinstance(other, float):
            assert value == pytest.approx(other, rel=1e-12, abs=1e-12), key
        else:
            assert value == other, key


@pytest.mark.parametrize("seed", range(4))
def test_results_equal_compare_blocks(seed: int) -> None:
    cells = _random_cells(300, seed)
    for cell, comparison in zip(cells, compare_many(cells), strict=True):
        _assert_same(comparison, _alone(cell))


def test_custom_rules_are_applied() -> None:
    cells = [each for each in _random_cells(50, 9) if each.baseline]
    comparisons = compare_many(cells, alpha=0.2, equivalence_alpha=0.3, confidence=0.8)
    for cell, comparison in zip(cells, comparisons, strict=True):
        wanted = compare_blocks(
            cell.baseline, cell.contender, better=cell.better, margin=cell.margin,
            orders=cell.orders, alpha=0.2, equivalence_alpha=0.3, confidence=0.8,
        )  # fmt: skip
        _assert_same(comparison, wanted)


def test_no_cells_are_accepted() -> None:
    assert compare_many([]) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], []),
        ([1.0], [2.0]),
        ([3.0] * 6, [3.0] * 6),
        ([3.0] * 6, [4.0] * 6),
        ([0.0] * 6, [0.0] * 6),
        ([1.0, 0.0, 1.0, 1.0, 1.0], [1.0] * 5),
        ([None] * 5, [1.0] * 5),
        ([5e-324] * 8, [1.7e308] * 8),
    ],
)
def test_degenerate_cells_match_the_reference(before: list, after: list) -> None:
    cell = ComparisonInput(baseline=before, contender=after, **SAME)
    others = _random_cells(20, 5)
    _assert_same(compare_many([*others, cell])[-1], _alone(cell))


@pytest.mark.parametrize(
    "cell",
    [
        ComparisonInput(baseline=[math.nan] * 5, contender=[1.0] * 5, **SAME),
        ComparisonInput(baseline=[math.inf] * 5, contender=[1.0] * 5, **SAME),
        ComparisonInput(baseline=[-1.0] * 5, contender=[1.0] * 5, **SAME),
        ComparisonInput(baseline=[1.0] * 5, contender=[1.0] * 4, **SAME),
        ComparisonInput(baseline=[1.0] * 5, contender=[1.0] * 5, better="higher", margin=0.0),
        ComparisonInput(baseline=[1.0] * 5, contender=[1.0] * 5, better="up", margin=0.03),  # type: ignore[arg-type]
    ],
)
def test_invalid_cells_are_refused_like_in_compare_blocks(cell: ComparisonInput) -> None:
    with pytest.raises(ValueError, match=r"finite|baseline values|margin|better"):
        compare_many([ComparisonInput(baseline=[1.0] * 5, contender=[1.1] * 5, **SAME), cell])


def test_a_cell_does_not_depend_on_order_or_other_cells() -> None:
    cells = _random_cells(2_000, 7)
    forwards = compare_many(cells)
    assert compare_many(cells[::-1])[::-1] == forwards
    assert compare_many(cells[:1]) == forwards[:1]


def test_results_do_not_depend_on_scale_and_swapping_sides_swaps_the_sign() -> None:
    cells = [each for each in _random_cells(200, 11) if None not in each.baseline]
    scaled = [
        ComparisonInput(
            baseline=[value * 1024 for value in cell.baseline],
            contender=[value * 1024 for value in cell.contender],
            better=cell.better,
            margin=cell.margin,
            orders=cell.orders,
        )
        for cell in cells
    ]
    swapped = [
        ComparisonInput(
            baseline=cell.contender,
            contender=cell.baseline,
            better=cell.better,
            margin=cell.margin,
            orders=[-order for order in cell.orders],
        )
        for cell in cells
    ]
    other = {Verdict.REGRESSED: Verdict.IMPROVED, Verdict.IMPROVED: Verdict.REGRESSED}
    for plain, large, turned in zip(
        compare_many(cells), compare_many(scaled), compare_many(swapped), strict=True
    ):
        assert large.verdict is plain.verdict
        if plain.change is None:
            continue
        assert large.change == pytest.approx(plain.change, rel=1e-9, abs=1e-12)
        assert turned.change == pytest.approx(1 / (1 + plain.change) - 1, rel=1e-9, abs=1e-12)
        # Near the margin the two sides of it are of different reach: 1/1.03 is not 0.97.
        if plain.verdict in other and abs(plain.change) > 0.2:
            assert turned.verdict is other[plain.verdict]
