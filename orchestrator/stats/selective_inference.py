"""Intervals and estimates of changes that were selected because they are significant.

Chance helps a change to be selected. So the measured changes of regressed and improved metrics are
too large on average, and their ordinary intervals contain the true change too rarely. The interval
has a higher confidence, so that at most 5 % of all selected intervals miss the true change (false
coverage rate; Benjamini and Yekutieli 2005). The estimate is the mean of two: the measured change,
and the median-unbiased estimate under the condition of the selection (Zhong and Prentice 2008). The
latter is too small on average, mostly for runs until decided, and varies more. Their mean is a
usual compromise (Ghosh, Zou and Wright 2008).
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from orchestrator.stats import special
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import (
    ALPHA,
    LARGEST_LOG,
    Comparison,
    as_change,
    compute_standard_error,
)
from orchestrator.stats.multiple_testing import CLAIMS, MatrixVerdict
from orchestrator.stats.paired import ROUNDING
from orchestrator.stats.summary import compute_t_quantile

#: Halvings of the range of the estimate. The result is exact to a billionth of it.
_HALVINGS = 30
#: The smallest alpha. The quantiles of smaller ones have no meaning for measured noise.
_LEAST_ALPHA = 1e-9


def adjust_claims(
    compared: Mapping[str, Mapping[str, Comparison]],
    matrix: MatrixVerdict,
    spending: Mapping[str, Spending],
) -> dict[str, dict[str, Comparison]]:
    """Return the comparisons (case → metric), with the regressed and improved ones adjusted.

    `spending`: case → the verdicts on its blocks.
    """
    adjusted = {case: dict(metrics) for case, metrics in compared.items()}
    for (case, metric), verdict in matrix.cells.items():
        if verdict in CLAIMS:
            alpha = min(ALPHA, matrix.accepted_threshold / spending[case].penalty)
            adjusted[case][metric] = adjust_for_selection(compared[case][metric], alpha)
    return adjusted


def adjust_for_selection(comparison: Comparison, alpha: float) -> Comparison:
    """Return the comparison of a claimed change with the interval and the estimate of a selection.

    `alpha`: the largest p value that suffices for the claim. The interval has
    the confidence 1 − `alpha`, so it never contains zero. `likely_change` lies between zero and
    the measured change, and within the interval. A comparison without an interval stays as it is.
    """
    error, degrees = compute_standard_error(comparison), comparison.degrees
    if comparison.change is None or error is None or degrees is None:
        return comparison
    mean = math.log1p(comparison.change) if comparison.change > -1 else -LARGEST_LOG
    confidence = max(comparison.confidence, 1 - max(alpha, _LEAST_ALPHA))
    reach = compute_t_quantile(confidence, degrees) * error
    low, high = mean - reach, mean + reach
    unbiased = estimate_selected(mean, error, degrees, margin=comparison.margin, reach=reach)
    likely = (mean + unbiased) / 2
    return replace(
        comparison,
        confidence=confidence,
        low=as_change(low),
        high=as_change(high),
        half_width=as_change(reach),
        likely_change=as_change(min(max(likely, low), high)),
    )


def estimate_selected(
    mean: float, error: float, degrees: float, *, margin: float, reach: float
) -> float:
    """Return the true log ratio that a selected mean exceeds with even odds.

    A mean is selected if it is farther than `reach` from zero, and beyond ±`margin`.
    """
    if error < ROUNDING:
        return mean
    sign = math.copysign(1.0, mean)
    above = max(reach, abs(math.log1p(sign * margin)))
    below = max(reach, abs(math.log1p(-sign * margin)))
    low, high = 0.0, abs(mean)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        selected = _exceed(above, middle, error, degrees) + _exceed(below, -middle, error, degrees)
        larger = _exceed(abs(mean), middle, error, degrees)
        low, high = (low, middle) if 2 * larger >= selected else (middle, high)
    return sign * high


def _exceed(limit: float, true: float, error: float, degrees: float) -> float:
    """Return the probability of a mean above the limit."""
    return float(special.stdtr(degrees, (true - limit) / error))
