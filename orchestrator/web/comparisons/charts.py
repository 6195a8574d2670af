"""Data for charts and interval bars, which are drawn without further computation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.comparisons.report import MetricComparison
from orchestrator.measurements.distributions import LatencyCurve
from orchestrator.stats.quantile_change import QuantileChanges

BAR_WIDTH = 200.0
_LEAST_REACH = 0.02
_GREATEST_REACH = 4.0
#: Labels of the percentile axis.
_TICKS = (1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """An interval around zero in SVG units, 0 to BAR_WIDTH; zero is in the middle.

    Without an interval, only the point is drawn, and `width` is 0.
    """

    x: float
    width: float
    point: float
    margin_x: float
    margin_width: float
    clipped: bool


def compute_axis_limit(metrics: Sequence[MetricComparison]) -> float:
    """Return how far all bars of a table extend to each side, as a change."""
    ends = [abs(end) for metric in metrics for end in metric.interval or (metric.change or 0.0,)]
    return min(_GREATEST_REACH, max([_LEAST_REACH, *ends]) * 1.15)


def build_interval_bar(metric: MetricComparison, reach: float) -> IntervalBar | None:
    """Return the metric's change on an axis from -reach to +reach; None if there is none."""
    if metric.change is None:
        return None
    low, high = metric.interval or (metric.change, metric.change)
    start, end = _place(low, reach), _place(high, reach)
    margin_start, margin_end = _place(-metric.margin, reach), _place(metric.margin, reach)
    return IntervalBar(
        x=start,
        width=round(max(end - start, 1.5), 2) if metric.interval else 0.0,
        point=_place(metric.change, reach),
        margin_x=margin_start,
        margin_width=round(margin_end - margin_start, 2),
        clipped=abs(low) > reach or abs(high) > reach,
    )


def build_latency_chart(
    names: tuple[str, str], curves: tuple[LatencyCurve | None, LatencyCurve | None]
) -> dict[str, Any] | None:
    """Return latency in ms at the percentiles of both sides; None without curves.

    See `_compute_logit` for the horizontal axis.
    """
    known = zip(names, curves, strict=True)
    drawn = [(label, _build_curve_points(curve)) for label, curve in known if curve is not None]
    series = [{"label": label, "points": points} for label, points in drawn]
    places = [point["x"] for _, points in drawn for point in points]
    return {"series": series, "ticks": _build_ticks(places), "unit": "ms"} if places else None


def build_quantile_chart(changes: QuantileChanges | None) -> dict[str, Any] | None:
    """Return the change at each percentile in per cent, with its interval and the joint band."""
    if changes is None:
        return None
    points: list[dict[str, Any]] = [
        {
            "x": _compute_logit(each.percentile),
            "label": f"p{each.percentile:g}",
            **{
                name: None if change is None else round(change * 100, 4)
                for name, change in (
                    ("y", each.change), ("low", each.low), ("high", each.high),
                    ("bandLow", each.band_low), ("bandHigh", each.band_high),
                )
            },
        }
        for each in changes.points
    ]  # fmt: skip
    return {"points": points, "ticks": _build_ticks([point["x"] for point in points])}


def _build_ticks(places: Sequence[float]) -> list[dict[str, Any]]:
    if not places:
        return []
    first, last = min(places) - 0.01, max(places) + 0.01
    return [
        {"value": _compute_logit(q), "label": f"p{q:g}"}
        for q in _TICKS
        if first <= _compute_logit(q) <= last
    ]


def _place(change: float, reach: float) -> float:
    share = max(-1.0, min(1.0, change / reach))
    return round(BAR_WIDTH / 2 * (1 + share), 2)


def _build_curve_points(curve: LatencyCurve) -> list[dict[str, Any]]:
    known = zip(curve.percentiles, curve.seconds, strict=True)
    return [
        {"x": _compute_logit(q), "y": seconds * 1e3, "label": f"p{q:g}"}
        for q, seconds in known
        if seconds is not None and 0 < q < 100
    ]


def _compute_logit(percentile: float) -> float:
    """Return log10(q / (1 - q)): p50 is in the middle, and each step in the tails is a decade."""
    share = percentile / 100
    return round(math.log10(share / (1 - share)), 6)


def build_latency_rows(
    curves: tuple[LatencyCurve | None, LatencyCurve | None],
) -> tuple[tuple[str, float | None, float | None], ...]:
    """Return rows (percentile, baseline, contender) in seconds."""
    before, after = (_map_by_percentile(curve) for curve in curves)
    places = sorted(set(before) | set(after))
    return tuple((f"p{q:g}", before.get(q), after.get(q)) for q in places)


def _map_by_percentile(curve: LatencyCurve | None) -> dict[float, float | None]:
    return {} if curve is None else dict(zip(curve.percentiles, curve.seconds, strict=True))
