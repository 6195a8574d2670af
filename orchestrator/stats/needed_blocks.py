"""The number of blocks that will probably decide a comparison, by its decision rule.

A comparison is decided when it shows a change beyond the margin, or proves that any is within it
(see `compare_blocks`). The blocks that it has remain. They also tell which true changes and noises
are likely, and further blocks are predicted for each of these.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats import special
from orchestrator.stats.comparison import ALPHA, EQUIVALENCE_ALPHA, LARGEST_LOG, Comparison
from orchestrator.stats.paired import FEWEST_BLOCKS, ROUNDING
from orchestrator.stats.power import MOST_BLOCKS, POWER

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: A range begins where the first share of the likely changes and noises suffices, and ends with the
#: second one. The lower end is further out: comparisons are open because their measured change is
#: near the margin. The true one is often farther away and needs fewer blocks. The shares are
#: calibrated by simulation (`make bench-detection`).
LEAST_SHARE, MOST_SHARE = 0.01, 0.75
#: The number of likely changes and noises, and the step of their lattice: Fibonacci numbers.
_POINTS, _STEP = 55, 34


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRule:
    """The alphas of a change beyond the margin, and of equivalence.

    A change must also hold among all comparisons of a table: `claim_alpha` is the largest p value
    that does.
    """

    claim_alpha: float = ALPHA
    equivalence_alpha: float = EQUIVALENCE_ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEstimate:
    """`probable` blocks decide a comparison with a probability of POWER.

    The number that would do so if the true change and noise were known is between `least` and
    `most` in at least four of five cases.
    """

    probable: int
    least: int
    most: int


Estimate = TypeVar("Estimate", bound=BlockEstimate)


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherBlocks(BlockEstimate):
    """Blocks in addition to the present ones."""

    @property
    def in_reach(self) -> int | None:
        """Return the probable number; None if no run has so many."""
        return self.probable if self.probable <= MOST_BLOCKS else None

    @property
    def range(self) -> tuple[int, int | None]:
        """Return the range; None instead of an end that no run reaches."""
        return self.least, self.most if self.most <= MOST_BLOCKS else None

    @property
    def text(self) -> str:
        """Return "12 to 30 more blocks" or "7 to over 100 more blocks"."""
        least, most = self.range
        if most is None:
            return f"{least} to over {MOST_BLOCKS} more blocks"
        numbers = f"{least}" if least == most else f"{least} to {most}"
        return f"{numbers} more block{'' if most == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededBlocks(BlockEstimate):
    """Total blocks, with the present ones."""

    def count_further(self, blocks: int, excluded: int = 0) -> FurtherBlocks:
        """Return the blocks in addition to the present ones.

        As many of them are assumed to be excluded as of the present ones.
        """
        counted = max(1, blocks)
        measured = max(counted, blocks + excluded)
        probable, least, most = (
            max(1, math.ceil((total - blocks) * measured / counted))
            for total in (self.probable, self.least, self.most)
        )
        return FurtherBlocks(probable=probable, least=least, most=most)


def find_largest(estimates: Iterable[Estimate]) -> Estimate | None:
    """Return the blocks that decide all of several comparisons of a case; None without any."""
    known = list(estimates)
    if not known:
        return None
    return replace(
        known[0],
        probable=max(each.probable for each in known),
        least=max(each.least for each in known),
        most=max(each.most for each in known),
    )


def export_needed_blocks(needed: NeededBlocks | None, blocks: int) -> dict[str, Any]:
    """Return the total and the range of further blocks for programs; None for out of reach."""
    further = None if needed is None else needed.count_further(blocks)
    if further is None:
        return {"needed_blocks": None, "more_blocks_range": None}
    total = None if further.in_reach is None else blocks + further.in_reach
    return {"needed_blocks": total, "more_blocks_range": further.range}


class _Measured(NamedTuple):
    """Columns of comparisons: blocks, mean and noise of a block's log ratio, and the margin.

    `degrees` of freedom of the noise. Rows of `means` and `sigmas` are comparisons, and their
    columns are true changes and noises that are equally likely.
    """

    blocks: Floats
    mean: Floats
    sigma: Floats
    degrees: Floats
    margin: Floats
    means: Floats
    sigmas: Floats


def estimate_needed_blocks(
    comparisons: Sequence[Comparison], rule: DecisionRule
) -> list[NeededBlocks | None]:
    """Return for each comparison the total blocks that decide it.

    Each is at least one more than it has, and FEWEST_BLOCKS. If MOST_BLOCKS further ones do not
    suffice, it is one more than these. None for unpaired sides, and if a value has no ratio.
    """
    needed = [_estimate_without_spread(each) for each in comparisons]
    places = [
        at for at, each in enumerate(comparisons) if each.paired and each.half_width is not None
    ]
    if places:
        measured = _read([comparisons[at] for at in places])
        columns = _search(measured, rule)
        for at, probable, least, most in zip(places, *columns, strict=True):
            needed[at] = NeededBlocks(probable=probable, least=least, most=max(most, probable))
    return needed


def _estimate_without_spread(comparison: Comparison) -> NeededBlocks | None:
    """Return the estimate of no block, or of one with a ratio: nothing is known of the noise."""
    blocks, change = comparison.blocks, comparison.change
    if not comparison.paired or (blocks and (blocks > 1 or change is None)):
        return None
    return NeededBlocks(probable=FEWEST_BLOCKS, least=FEWEST_BLOCKS, most=blocks + MOST_BLOCKS + 1)


def _read(comparisons: Sequence[Comparison]) -> _Measured:
    blocks = np.array([each.blocks for each in comparisons], dtype=np.float64)
    changes = np.array([each.change for each in comparisons], dtype=np.float64)
    widths = np.log1p(np.array([each.half_width for each in comparisons], dtype=np.float64))
    confidence = np.array([each.confidence for each in comparisons])
    with np.errstate(divide="ignore"):
        mean = np.clip(np.log1p(changes), -LARGEST_LOG, LARGEST_LOG)
    degrees = np.array([each.degrees for each in comparisons], dtype=np.float64)
    sigma = widths * np.sqrt(blocks) / special.stdtrit(degrees, (1 + confidence) / 2)
    sigma = np.maximum(sigma, ROUNDING)
    margin = np.array([each.margin for each in comparisons])
    means, sigmas = _list_likely(blocks, mean, sigma, degrees)
    return _Measured(blocks, mean, sigma, degrees, margin, means, sigmas)


def _list_likely(
    blocks: Floats, mean: Floats, sigma: Floats, degrees: Floats
) -> tuple[Floats, Floats]:
    """Return true means and noises that are equally likely, given the measured ones.

    They are those of the fiducial distribution. Its intervals for the mean are the t intervals.
    """
    noise_shares, mean_shares = _spread_points()
    quantiles = special.chdtri(degrees[:, None], 1 - noise_shares)
    sigmas = sigma[:, None] * np.sqrt(degrees[:, None] / quantiles)
    return mean[:, None] + special.ndtri(mean_shares) * sigmas / np.sqrt(blocks)[:, None], sigmas


def _spread_points() -> tuple[Floats, Floats]:
    """Return the coordinates of points that fill the unit square evenly: a Fibonacci lattice."""
    places = np.arange(_POINTS)
    return (places + 0.5) / _POINTS, (places * _STEP % _POINTS + 0.5) / _POINTS


def _search(measured: _Measured, rule: DecisionRule) -> Iterator[list[int]]:
    """Yield the probable, the least and the most blocks.

    All are found in one bisection, because its steps cost more than their numbers.
    """
    kinds = np.repeat(np.arange(3), measured.blocks.size)
    rows = _Measured(*(np.concatenate([each] * 3) for each in measured))
    shares = np.array([0.0, LEAST_SHARE, MOST_SHARE])[kinds]

    def suffices(blocks: Floats) -> Bools:
        odds = _predict_decision(blocks, rows, rule)
        likely = (odds >= POWER).mean(axis=1) >= shares
        return np.asarray(np.where(kinds == 0, odds.mean(axis=1) >= POWER, likely))

    found = _find_fewest(rows.blocks, suffices)
    yield from found.reshape(3, -1).tolist()


def _find_fewest(present: Floats, suffices: Callable[[Floats], Bools]) -> NDArray[np.int64]:
    """Find the fewest total blocks that suffice: more blocks never suffice less."""
    least = np.maximum(present + 1, FEWEST_BLOCKS)
    low, high = least - 1, present + MOST_BLOCKS + 1
    while (high - low > 1).any():
        middle = np.clip(np.floor((low + high) / 2), least, high)
        enough = suffices(middle)
        low = np.where(enough, low, np.minimum(middle, high - 1))
        high = np.where(enough, middle, high)
    return high.astype(np.int64)


def _predict_decision(blocks: Floats, measured: _Measured, rule: DecisionRule) -> Floats:
    """Return the probability that each comparison is decided with so many blocks.

    Rows are comparisons, columns are their likely changes and noises.
    """
    total, present, mean = blocks[:, None], measured.blocks[:, None], measured.mean[:, None]
    further = total - present
    error = _predict_sigma(total, measured) / np.sqrt(total)
    degrees = measured.degrees + blocks - measured.blocks
    claim = error * _compute_quantiles(rule.claim_alpha / 2, degrees)
    same = error * _compute_quantiles(rule.equivalence_alpha, degrees)
    low, high = np.log1p(-measured.margin)[:, None], np.log1p(measured.margin)[:, None]
    # The present blocks keep their mean; only that of the further ones is random.
    centre = (present * mean + further * measured.means) / total
    spread = measured.sigmas * np.sqrt(further) / total

    smaller = special.ndtr((np.minimum(low, -claim) - centre) / spread)
    larger = special.ndtr((centre - np.maximum(high, claim)) / spread)
    within = special.ndtr((high - same - centre) / spread) - special.ndtr(
        (low + same - centre) / spread
    )
    return np.asarray(smaller + larger + np.maximum(0.0, within))


def _predict_sigma(total: Floats, measured: _Measured) -> Floats:
    """Return the noise that all blocks will show on average, with the present ones."""
    present, degrees = measured.blocks[:, None], measured.degrees[:, None]
    further = total - present
    squares = degrees * measured.sigma[:, None] ** 2
    squares = squares + (further - 1 + present / total) * measured.sigmas**2
    # The present mean is not the true one.
    squares += present * further / total * (measured.mean[:, None] - measured.means) ** 2
    return np.asarray(np.sqrt(squares / (degrees + further)))


def _compute_quantiles(alpha: float, degrees: Floats) -> Floats:
    """Return a column of t quantiles. They are slow, and many comparisons have equal degrees."""
    different, places = np.unique(degrees, return_inverse=True)
    return np.asarray(special.stdtrit(different, 1 - alpha)[np.ravel(places)][:, None])
