"""The number of blocks that will probably decide a comparison, by its decision rule.

A comparison is decided when it shows a change beyond the margin, or proves that any is within it
(see `compare_blocks`). The blocks that it has remain. Further ones are predicted from their mean
and noise, and from how well the mean is known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtr, stdtrit

from orchestrator.stats.comparison import ALPHA, EQUIVALENCE_ALPHA, LARGEST_LOG, Comparison
from orchestrator.stats.order_effect import ORDER_UNKNOWN
from orchestrator.stats.paired import FEWEST_BLOCKS, ROUNDING
from orchestrator.stats.power import MOST_BLOCKS, POWER

Floats = NDArray[np.float64]

#: With fewer blocks than these odds need, a comparison most likely stays open.
EVEN_ODDS = 0.5
#: Quantiles of the noise that will be measured.
_SHARES = (np.arange(16) + 0.5) / 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRule:
    """The alphas of a change beyond the margin, and of equivalence.

    A change must also hold among all comparisons of a table: `claim_alpha` is the largest p value
    that does.
    """

    claim_alpha: float = ALPHA
    equivalence_alpha: float = EQUIVALENCE_ALPHA


class _Measured(NamedTuple):
    """Columns of comparisons: blocks, mean and noise of a block's log ratio, and the margin.

    `parameters` of the model: the mean, and the effect of the order if it is known.
    """

    blocks: Floats
    mean: Floats
    sigma: Floats
    margin: Floats
    parameters: Floats


def estimate_needed_blocks(
    comparisons: Sequence[Comparison], rule: DecisionRule, power: float = POWER
) -> list[int | None]:
    """Return for each comparison the total blocks that decide it with a probability of `power`.

    At least one more than it has, and FEWEST_BLOCKS. If MOST_BLOCKS further ones do not suffice,
    one more than these. None for unpaired sides, and if a value has no ratio.
    """
    needed: list[int | None] = [
        FEWEST_BLOCKS if _has_no_spread(each) else None for each in comparisons
    ]
    places = [
        at for at, each in enumerate(comparisons) if each.paired and each.half_width is not None
    ]
    if places:
        found = _search(_read([comparisons[at] for at in places]), rule, power)
        for at, blocks in zip(places, found.tolist(), strict=True):
            needed[at] = blocks
    return needed


def _has_no_spread(comparison: Comparison) -> bool:
    """Return whether it has no block, or one with a ratio."""
    blocks, change = comparison.blocks, comparison.change
    return comparison.paired and (not blocks or (blocks == 1 and change is not None))


def is_out_of_reach(comparison: Comparison, needed: int) -> bool:
    """Return whether no run has the blocks that this comparison needs in addition."""
    return needed - comparison.blocks > MOST_BLOCKS


def _read(comparisons: Sequence[Comparison]) -> _Measured:
    blocks = np.array([each.blocks for each in comparisons], dtype=np.float64)
    changes = np.array([each.change for each in comparisons], dtype=np.float64)
    widths = np.log1p(np.array([each.half_width for each in comparisons], dtype=np.float64))
    confidence = np.array([each.confidence for each in comparisons])
    with np.errstate(divide="ignore"):
        mean = np.clip(np.log1p(changes), -LARGEST_LOG, LARGEST_LOG)
    degrees = np.array([each.degrees for each in comparisons], dtype=np.float64)
    sigma = widths * np.sqrt(blocks) / stdtrit(degrees, (1 + confidence) / 2)
    margin = np.array([each.margin for each in comparisons])
    parameters = np.array(
        [1.0 if each.order_note == ORDER_UNKNOWN else 2.0 for each in comparisons]
    )
    return _Measured(blocks, mean, np.maximum(sigma, ROUNDING), margin, parameters)


def _search(measured: _Measured, rule: DecisionRule, power: float) -> NDArray[np.int64]:
    """Find the fewest blocks by bisection: the probability grows with the blocks."""
    least = np.maximum(measured.blocks + 1, FEWEST_BLOCKS)
    low, high = least - 1, measured.blocks + MOST_BLOCKS + 1
    while (high - low > 1).any():
        middle = np.clip(np.floor((low + high) / 2), least, high)
        enough = _predict_decision(middle, measured, rule) >= power
        low = np.where(enough, low, np.minimum(middle, high - 1))
        high = np.where(enough, middle, high)
    return high.astype(np.int64)


def _predict_decision(total: Floats, measured: _Measured, rule: DecisionRule) -> Floats:
    """Return the probability that each comparison is decided with `total` blocks."""
    # Rows are comparisons, columns are quantiles of the noise that will be measured.
    distances = _compute_distances(total, measured.parameters, rule)
    claim, same = (each * measured.sigma[:, None] for each in distances)
    low, high = np.log1p(-measured.margin)[:, None], np.log1p(measured.margin)[:, None]
    mean = measured.mean[:, None]
    # The mean of all blocks differs from that of the present ones: the further blocks have noise,
    # and the present mean is not the true one.
    more = (total - measured.blocks) / (total * measured.blocks)
    spread = (measured.sigma * np.sqrt(more))[:, None]

    def predict_mean(start: Floats | float, end: Floats | float) -> Floats:
        """Return the probability that the mean of all blocks is between these."""
        share = ndtr((end - mean) / spread) - ndtr((start - mean) / spread)
        return np.asarray(np.maximum(0.0, share))

    beyond = predict_mean(-np.inf, np.minimum(low, -claim)) + predict_mean(
        np.maximum(high, claim), np.inf
    )
    within = predict_mean(low + same, high - same)
    return np.asarray((beyond + within).mean(axis=1))


def _compute_distances(total: Floats, parameters: Floats, rule: DecisionRule) -> Iterator[Floats]:
    """Yield the distances of a mean from zero, or from the margin, that each alpha requires.

    They are in units of the true noise. The slow quantiles are computed once for each pair of total
    and parameters.
    """
    pairs, places = np.unique(np.stack([total, parameters]), axis=1, return_inverse=True)
    each_total, places = pairs[0], np.ravel(places)
    degrees = (each_total - pairs[1])[:, None]
    errors = np.sqrt(chdtri(degrees, 1 - _SHARES) / degrees / each_total[:, None])
    for alpha in (rule.claim_alpha / 2, rule.equivalence_alpha):
        yield (stdtrit(degrees, 1 - alpha) * errors)[places]
