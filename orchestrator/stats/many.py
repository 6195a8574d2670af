"""Hundreds of comparisons at once: the results of `compare_blocks`, computed by columns.

`compare_blocks` is the reference; tests require equal results from both.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats import special
from orchestrator.stats.build_noise import BuildNoise
from orchestrator.stats.build_variance import (
    UNKNOWN_BUILDS,
    Builds,
    add_build_variance,
    count_builds,
    find_added_noise,
)
from orchestrator.stats.comparison import (
    ALPHA,
    CONFIDENCE,
    EQUIVALENCE_ALPHA,
    LARGEST_LOG,
    Better,
    Comparison,
    RobustChange,
    Verdict,
    as_change,
    build_reasons,
    choose_verdict,
    compare_blocks,
    contradicts_verdict,
)
from orchestrator.stats.order_effect import (
    UNKNOWN,
    BlockMeans,
    OrderEffect,
    Orders,
    compute_block_means,
    explain_unseparated,
)
from orchestrator.stats.paired import FEWEST_BLOCKS, ROUNDING
from orchestrator.stats.signed_rank import FEWEST_PAIRS, compute_rank
from orchestrator.stats.summary import compute_t_quantile

Floats = NDArray[np.float64]
_BETTER = ("higher", "lower")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonInput:
    """One metric of one case: `baseline[i]` and `contender[i]` were measured in block i.

    `orders[i]` is the order of block i, as in `order_effect`, and `builds[i]` are the builds of its
    trials; empty if they are not known. `build_noise` is known from elsewhere.
    """

    baseline: Sequence[float | None]
    contender: Sequence[float | None]
    better: Better
    margin: float
    orders: Sequence[int] = ()
    builds: Sequence[tuple[int, int]] = ()
    build_noise: BuildNoise | None = None


class _Row(NamedTuple):
    """The parts of the comparison of one cell; `half_log` is `half_width` as a log."""

    n: int
    baseline: float
    contender: float
    change: float
    low: float
    high: float
    p_value: float
    equivalence_p: float
    half_log: float
    half_width: float
    degrees: float
    order_effect: OrderEffect | None
    order_note: str
    nested: bool
    build_noise: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    alpha: float
    equivalence_alpha: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _TestResults:
    """Columns with a row per cell: logs of means, their differences, and the results of tests."""

    before: Floats
    after: Floats
    mean: Floats
    half_width: Floats
    effect_half_width: Floats
    p_value: Floats
    equivalence_p: Floats
    n: int
    means: BlockMeans
    order_notes: Sequence[str]
    build_noises: Sequence[float | None]


def compare_many(
    cells: Sequence[ComparisonInput],
    *,
    alpha: float = ALPHA,
    equivalence_alpha: float = EQUIVALENCE_ALPHA,
    confidence: float = CONFIDENCE,
) -> list[Comparison]:
    """Compare each cell as `compare_blocks` does, in the given order; raise ValueError as it does.

    Cells with positive values only and at least two blocks are computed together with cells of the
    same length. The others are computed one by one.
    """
    rules = _Rules(alpha=alpha, equivalence_alpha=equivalence_alpha, confidence=confidence)
    results: list[Comparison | None] = [None] * len(cells)
    for n, places in _group_by_length(cells).items():
        before, after = _build_matrix(cells, places)
        plain = _find_plain_rows(before) & _find_plain_rows(after)
        chosen = np.array(places)[plain].tolist()
        if n < 2 or not chosen:
            continue
        logs = np.log(before[plain]), np.log(after[plain])
        group = [cells[place] for place in chosen]
        for place, comparison in zip(chosen, _judge_cells(group, logs, rules), strict=True):
            results[place] = comparison
    return [each or _compare_alone(cell, rules) for each, cell in zip(results, cells, strict=True)]


def _compare_alone(cell: ComparisonInput, rules: _Rules) -> Comparison:
    return compare_blocks(
        cell.baseline,
        cell.contender,
        better=cell.better,
        margin=cell.margin,
        orders=cell.orders,
        builds=cell.builds,
        build_noise=cell.build_noise,
        alpha=rules.alpha,
        equivalence_alpha=rules.equivalence_alpha,
        confidence=rules.confidence,
    )


def _group_by_length(cells: Sequence[ComparisonInput]) -> dict[int, list[int]]:
    """Group the indices of the cells by their number of blocks, without invalid cells."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, cell in enumerate(cells):
        n = len(cell.baseline)
        same = n == len(cell.contender) and len(cell.orders) in (0, n)
        same &= len(cell.builds) in (0, n)
        if same and 0 < cell.margin < 1 and cell.better in _BETTER:
            places[n].append(place)
    return places


def _build_matrix(cells: Sequence[ComparisonInput], places: Sequence[int]) -> tuple[Floats, Floats]:
    """Return baselines and contenders with a row per cell; None is NaN."""
    before = np.array([cells[place].baseline for place in places], dtype=np.float64)
    after = np.array([cells[place].contender for place in places], dtype=np.float64)
    return before, after


def _find_plain_rows(values: Floats) -> NDArray[np.bool_]:
    return np.asarray((np.isfinite(values) & (values > 0)).all(axis=1))


def _judge_cells(
    cells: Sequence[ComparisonInput], logs: tuple[Floats, Floats], rules: _Rules
) -> list[Comparison]:
    """Compare cells with equal numbers of blocks; `logs` are of baselines and contenders."""
    margins = np.array([cell.margin for cell in cells])
    tested = _test_cells(cells, logs, margins, rules)
    verdicts = _derive_verdicts(cells, tested, rules)
    robust = _estimate_robust(tested.means.differences, rules.confidence)
    return [
        _build_comparison(cell, row, verdict, None if row.nested else second, rules)
        for cell, row, verdict, second in zip(
            cells, _iterate_rows(tested), verdicts, robust, strict=True
        )
    ]


def _build_orders(cells: Sequence[ComparisonInput]) -> Orders:
    unknown = [UNKNOWN] * len(cells[0].baseline)
    return np.array([cell.orders or unknown for cell in cells], dtype=np.int64)


def _build_builds(cells: Sequence[ComparisonInput]) -> Builds:
    unknown = [UNKNOWN_BUILDS] * len(cells[0].baseline)
    return np.array([cell.builds or unknown for cell in cells], dtype=np.int64)


def _test_cells(
    cells: Sequence[ComparisonInput],
    logs: tuple[Floats, Floats],
    margins: Floats,
    rules: _Rules,
) -> _TestResults:
    orders, builds = _build_orders(cells), _build_builds(cells)
    noises = [cell.build_noise for cell in cells]
    means = compute_block_means(logs[1] - logs[0], orders)
    means = add_build_variance(means, builds, noises)
    n = orders.shape[1]
    mean, error, degrees = means.mean, means.error, means.degrees
    low, high = np.log1p(-margins), np.log1p(margins)
    confident = _compute_quantiles(rules.confidence, means.block_degrees)
    return _TestResults(
        before=logs[0].mean(axis=1),
        after=logs[1].mean(axis=1),
        mean=mean,
        half_width=_compute_quantiles(rules.confidence, degrees) * error,
        effect_half_width=confident * means.block_error,
        p_value=np.minimum(1.0, 2 * _compute_tails(np.abs(mean), error, degrees)),
        equivalence_p=np.maximum(
            _compute_tails(mean - low, error, degrees), _compute_tails(high - mean, error, degrees)
        ),
        n=n,
        means=means,
        order_notes=[
            "" if separated else explain_unseparated(row)
            for row, separated in zip(orders, means.separated.tolist(), strict=True)
        ],
        build_noises=list(map(find_added_noise, builds, noises)),
    )


def _compute_quantiles(confidence: float, degrees: Floats) -> Floats:
    """Return the t quantile of each row. Most have one of two degrees, and quantiles are slow."""
    different, places = np.unique(degrees, return_inverse=True)
    quantiles = [compute_t_quantile(confidence, each) for each in different.tolist()]
    return np.array(quantiles)[places]


def _compute_tails(distance: Floats, error: Floats, degrees: Floats) -> Floats:
    """Compute `paired._tail` for arrays."""
    exact = error < ROUNDING
    tails = special.stdtr(degrees, -distance / np.where(exact, 1.0, error))
    tails = np.where(exact, np.where(distance > 0, 0.0, 1.0), tails)
    return np.where(np.abs(distance) < ROUNDING, 0.5, tails)


def _compute_changes(logs: Floats) -> Floats:
    return np.asarray(np.expm1(np.minimum(logs, LARGEST_LOG)))


def _derive_verdicts(
    cells: Sequence[ComparisonInput], tested: _TestResults, rules: _Rules
) -> list[Verdict]:
    if tested.n < FEWEST_BLOCKS:
        return [Verdict.INCONCLUSIVE] * len(cells)
    changed = (tested.p_value < rules.alpha).tolist()
    same = (tested.equivalence_p < rules.equivalence_alpha).tolist()
    means = tested.mean.tolist()
    return [
        choose_verdict(as_change(mean), cell.better, cell.margin, changed=is_changed, same=is_same)
        for cell, mean, is_changed, is_same in zip(cells, means, changed, same, strict=True)
    ]


def _estimate_robust(differences: Floats, confidence: float) -> list[RobustChange | None]:
    """Return the Hodges-Lehmann estimate of each row, as in `signed_rank`."""
    count, n = differences.shape
    if n < FEWEST_PAIRS:
        return [None] * count
    first, second = np.triu_indices(n)
    walsh = np.sort((differences[:, first] + differences[:, second]) / 2, axis=1)
    rank = compute_rank(n, (1 - confidence) / 2)
    middle = (walsh[:, (first.size - 1) // 2] + walsh[:, first.size // 2]) / 2
    columns = (
        _compute_changes(each).tolist() for each in (middle, walsh[:, rank - 1], walsh[:, -rank])
    )
    return [
        RobustChange(change=change, low=low, high=high)
        for change, low, high in zip(*columns, strict=True)
    ]


def _iterate_rows(tested: _TestResults) -> Iterator[_Row]:
    columns = (
        np.exp(tested.before), np.exp(tested.after), _compute_changes(tested.mean),
        _compute_changes(tested.mean - tested.half_width),
        _compute_changes(tested.mean + tested.half_width),
        tested.p_value, tested.equivalence_p, tested.half_width,
        _compute_changes(tested.half_width),
        tested.means.degrees,
    )  # fmt: skip
    lists = [column.tolist() for column in columns]
    rows = zip(
        *lists,
        _build_order_effects(tested),
        tested.order_notes,
        tested.means.nested.tolist(),
        tested.build_noises,
        strict=True,
    )
    return (_Row(tested.n, *values) for values in rows)


def _build_order_effects(tested: _TestResults) -> list[OrderEffect | None]:
    effect, reach = tested.means.effect, tested.effect_half_width
    columns = [_compute_changes(each).tolist() for each in (effect, effect - reach, effect + reach)]
    return [
        OrderEffect(change=change, low=low, high=high) if separated else None
        for change, low, high, separated in zip(
            *columns, tested.means.separated.tolist(), strict=True
        )
    ]


def _build_comparison(
    cell: ComparisonInput, row: _Row, verdict: Verdict, robust: RobustChange | None, rules: _Rules
) -> Comparison:
    fragile = robust is not None and contradicts_verdict(robust, verdict, cell.better, cell.margin)
    return Comparison(
        verdict=verdict,
        reasons=build_reasons(
            row.n,
            verdict,
            cell.margin,
            row.half_log,
            fragile,
            changed=row.p_value < rules.alpha,
        ),
        better=cell.better,
        margin=cell.margin,
        confidence=rules.confidence,
        blocks=row.n,
        baseline=row.baseline,
        contender=row.contender,
        change=row.change,
        low=row.low,
        high=row.high,
        p_value=row.p_value,
        equivalence_p=row.equivalence_p,
        half_width=row.half_width,
        robust=robust,
        fragile=fragile,
        degrees=row.degrees,
        order_effect=row.order_effect,
        order_note=row.order_note,
        builds=count_builds(cell.builds or [UNKNOWN_BUILDS]),
        nested=row.nested,
        build_noise=row.build_noise,
    )
