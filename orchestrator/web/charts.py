"""Data in drawing shape: what a chart or an interval bar needs, and nothing to compute there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.core.units import format_value
from orchestrator.results.reports import (
    CaseComparison,
    History,
    HistoryPoint,
    LatencyCurve,
    MetricComparison,
)
from orchestrator.web.host_facts import fact_title

BAR_WIDTH = 200.0
_LEAST_REACH = 0.02
_GREATEST_REACH = 4.0
#: Labels of the percentile axis.
_TICKS = (1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """An interval around zero in SVG units, 0 to BAR_WIDTH; zero is in the middle."""

    x: float
    width: float
    point: float
    margin_x: float
    margin_width: float
    clipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    metric: MetricComparison
    bar: IntervalBar | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """One case of a comparison as the page shows it."""

    comparison: CaseComparison
    primary: tuple[MetricRow, ...]
    others: tuple[MetricRow, ...]
    reach_shown: str
    chart_id: str
    latency_rows: tuple[tuple[str, float | None, float | None, float | None], ...]
    chart: dict[str, Any] | None


def case_view(case: CaseComparison, baseline: str, contender: str) -> CaseView:
    """`baseline` and `contender` name the two sides in the chart's legend."""
    reach = reach_of(case.metrics)
    rows = [MetricRow(metric=metric, bar=interval_bar(metric, reach)) for metric in case.metrics]
    return CaseView(
        comparison=case,
        primary=tuple(row for row in rows if row.metric.primary),
        others=tuple(row for row in rows if not row.metric.primary),
        reach_shown=f"{reach * 100:.{0 if reach >= 0.1 else 1}f} %",
        chart_id=f"latency-{case.case.pk}-{case.host.pk}",
        latency_rows=_latency_rows(case),
        chart=latency_chart(case, baseline, contender),
    )


def reach_of(metrics: Sequence[MetricComparison]) -> float:
    """How far the bars of one table reach to each side, as a change; the same for all rows."""
    ends = [abs(end) for metric in metrics if metric.primary for end in metric.interval or ()]
    return min(_GREATEST_REACH, max([_LEAST_REACH, *ends]) * 1.15)


def interval_bar(metric: MetricComparison, reach: float) -> IntervalBar | None:
    """The metric's interval on an axis from -reach to +reach; None where there is none."""
    if metric.interval is None or metric.change is None:
        return None
    low, high = metric.interval
    start, end = _place(low, reach), _place(high, reach)
    margin_start, margin_end = _place(-metric.margin, reach), _place(metric.margin, reach)
    return IntervalBar(
        x=start,
        width=round(max(end - start, 1.5), 2),
        point=_place(metric.change, reach),
        margin_x=margin_start,
        margin_width=round(margin_end - margin_start, 2),
        clipped=abs(low) > reach or abs(high) > reach,
    )


def latency_chart(case: CaseComparison, baseline: str, contender: str) -> dict[str, Any] | None:
    """Latency in ms at the percentiles of both commits; see `_logit` for the horizontal axis."""
    sides = ((baseline, case.baseline_latency), (contender, case.contender_latency))
    curves = [(label, _curve_points(curve)) for label, curve in sides if curve is not None]
    places = [point["x"] for _, points in curves for point in points]
    if not places:
        return None
    series = [{"label": label, "points": points} for label, points in curves]
    first, last = min(places) - 0.01, max(places) + 0.01
    ticks = [{"value": _logit(q), "label": f"p{q:g}"} for q in _TICKS if first <= _logit(q) <= last]
    return {"series": series, "ticks": ticks, "unit": "ms"}


def history_chart(history: History, urls: Sequence[str | None]) -> dict[str, Any]:
    """The points of a series with their band; `urls[i]` is where point i leads.

    `changes` are those of the host, each to be drawn before the point of that place.
    """
    scale, unit = _chart_unit(history)
    return {
        "title": history.title,
        "unit": unit,
        "points": [
            _history_point(point, history.unit, scale, url)
            for point, url in zip(history.points, urls, strict=True)
        ],
        "changes": _history_changes(history),
    }


def _history_changes(history: History) -> list[dict[str, Any]]:
    """One mark before each point at which the host was not the same any more."""
    facts: dict[int, dict[str, None]] = {}
    for each in history.changes:
        facts.setdefault(each.before, {}).update(dict.fromkeys(map(fact_title, each.changed)))
    return [{"before": place, "label": ", ".join(names)} for place, names in facts.items()]


def _history_point(point: HistoryPoint, unit: str, scale: float, url: str | None) -> dict[str, Any]:
    low, high = point.interval or (None, None)
    return {
        "label": point.commit.short_sha[:7],
        "subject": point.commit.subject,
        "value": point.value * scale,
        "low": None if low is None else low * scale,
        "high": None if high is None else high * scale,
        "shown": format_value(point.value, unit) + _doubt(point),
        "doubtful": bool(point.suspect),
        "url": url,
    }


def _doubt(point: HistoryPoint) -> str:
    return f" ({point.suspect} of {point.trials} trials suspect)" if point.suspect else ""


def _chart_unit(history: History) -> tuple[float, str]:
    if not history.unit.startswith("s"):
        return 1.0, "" if history.unit in {"count", "ratio"} else history.unit
    largest = max((abs(point.value) for point in history.points), default=0.0)
    suffix = history.unit.removeprefix("s")
    if largest >= 1:
        return 1.0, f"s{suffix}"
    return (1e3, f"ms{suffix}") if largest >= 1e-3 else (1e6, f"µs{suffix}")


def _place(change: float, reach: float) -> float:
    share = max(-1.0, min(1.0, change / reach))
    return round(BAR_WIDTH / 2 * (1 + share), 2)


def _curve_points(curve: LatencyCurve) -> list[dict[str, Any]]:
    known = zip(curve.percentiles, curve.seconds, strict=True)
    return [
        {"x": _logit(q), "y": seconds * 1e3, "label": f"p{q:g}"}
        for q, seconds in known
        if seconds is not None and 0 < q < 100
    ]


def _logit(percentile: float) -> float:
    """log10(q / (1 - q)): p50 in the middle, both tails spread out, a decade a step."""
    share = percentile / 100
    return round(math.log10(share / (1 - share)), 6)


def _latency_rows(
    case: CaseComparison,
) -> tuple[tuple[str, float | None, float | None, float | None], ...]:
    before, after = _by_percentile(case.baseline_latency), _by_percentile(case.contender_latency)
    places = sorted(set(before) | set(after))
    rows = []
    for q in places:
        old, new = before.get(q), after.get(q)
        rows.append((f"p{q:g}", old, new, new / old - 1 if old and new else None))
    return tuple(rows)


def _by_percentile(curve: LatencyCurve | None) -> dict[float, float | None]:
    return {} if curve is None else dict(zip(curve.percentiles, curve.seconds, strict=True))
