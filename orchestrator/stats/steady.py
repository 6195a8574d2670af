"""Where a trial's warm-up ends, and whether what follows stays as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

#: Slices averaged into one batch.
BATCH = 5
#: Fewer batches leave nothing to choose from: with two there is one answer.
FEWEST_BATCHES = 3
#: With fewer batches than these a minimum in the second half is mostly chance.
FEWEST_TO_DENY = 6
#: Batches at the end that no cut reaches: few of them lie close together by chance (Hoad, Robinson
#: and Davies 2010).
TAIL = 5
#: Slices in each third before their medians are compared.
FEWEST_IN_THIRD = 3
#: Squares of deviations below this share of the squared mean are rounding.
_ROUNDING = 1e-24

Reason = Literal["too short", "no steady state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """`cut`: leading slices that are warm-up. Where that is None, `reason` says why.

    "too short": too few slices to tell. "no steady state": half of the slices or more would have
    to be cut, so the trial was still changing.
    """

    cut: int | None = None
    reason: Reason | None = None


def mser5(values: Sequence[float]) -> Steady:
    """How many leading one-second slices are warm-up, a multiple of 5, by MSER-5 (White 1997).

    Of the means of five slices each, so many are cut that the rest tells its own mean best: the
    squared deviations of what is left, divided by the square of its number, are least. The
    earliest such cut counts. Slices after the last full batch are not looked at.

    Too short are under 15 slices; under 30 a cut is looked for in the first half only. A series of
    noise alone is said to have no steady state in 24 % of all cases with 30 slices, 15 % with 40,
    6 % with 200: a flag to be shown, and no proof. ValueError for values that are not finite.
    """
    series = _finite(values)
    count = series.size // BATCH
    if count < FEWEST_BATCHES:
        return Steady(reason="too short")
    batches = series[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    cut = _best_cut(batches, _furthest(count))
    if 2 * cut >= count:
        return Steady(reason="no steady state")
    return Steady(cut=cut * BATCH)


def drift(values: Sequence[float]) -> float | None:
    """The median of the last third against that of the first, as a share: 0.1 is 10 % more.

    None with fewer than 9 values, or where the first median is not positive: then there is no
    share to speak of. ValueError for values that are not finite.
    """
    series = _finite(values)
    third = series.size // 3
    if third < FEWEST_IN_THIRD:
        return None
    first, last = float(np.median(series[:third])), float(np.median(series[-third:]))
    return last / first - 1 if first > 0 else None


def _furthest(count: int) -> int:
    """The last cut, in batches, that is looked at."""
    if count < FEWEST_TO_DENY:
        return (count - 1) // 2
    return count - min(TAIL, count // 2)


def _best_cut(batches: NDArray[np.float64], furthest: int) -> int:
    errors = np.array(
        [batches[cut:].var() / (batches.size - cut) for cut in range(furthest + 1)],
        dtype=np.float64,
    )
    tolerance = _ROUNDING * float(np.square(batches).max())
    return int(np.argmax(errors <= errors.min() + tolerance))


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    series = np.array(values, dtype=np.float64)
    if not np.isfinite(series).all():
        raise ValueError(f"a value that is not a number: {series.tolist()}")
    return series
