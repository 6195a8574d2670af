"""Interval bars: places on an axis around zero."""

from typing import Any

import pytest

from orchestrator.comparisons.report import MetricComparison
from orchestrator.loadtools.metrics import Metric
from orchestrator.stats.comparison import Comparison, Verdict
from orchestrator.web.comparisons.charts import BAR_WIDTH, build_interval_bar, compute_axis_limit


def _metric(low: float | None, high: float | None, **changes: Any) -> MetricComparison:
    known = low is not None and high is not None
    change = changes.pop("change", (low + high) / 2 if known else None)
    result = Comparison(
        verdict=Verdict.INCONCLUSIVE, reasons=(), better="lower", margin=0.03, confidence=0.95,
        blocks=5, baseline=1.0, contender=1.0, change=change, low=low, high=high,
    )  # fmt: skip
    given: dict[str, Any] = {
        "info": Metric(key="k", title="K", unit="s", better="lower"), "result": result,
        "primary": True, "q_value": None, "verdict": "inconclusive",
    }  # fmt: skip
    return MetricComparison(**{**given, **changes})


@pytest.mark.parametrize(
    ("low", "high", "x", "width", "point"),
    [
        (-0.1, 0.1, 0.0, BAR_WIDTH, BAR_WIDTH / 2),
        (0.0, 0.1, BAR_WIDTH / 2, BAR_WIDTH / 2, BAR_WIDTH * 0.75),
        (-0.05, 0.0, BAR_WIDTH / 4, BAR_WIDTH / 4, BAR_WIDTH * 0.375),
    ],
)
def test_an_interval_is_drawn_around_zero(
    low: float, high: float, x: float, width: float, point: float
) -> None:
    bar = build_interval_bar(_metric(low, high), reach=0.1)

    assert bar is not None
    assert (bar.x, bar.width, bar.point, bar.clipped) == (x, width, point, False)


def test_longer_intervals_are_clipped() -> None:
    bar = build_interval_bar(_metric(-0.5, 0.5), reach=0.1)

    assert bar is not None
    assert (bar.x, bar.x + bar.width, bar.clipped) == (0.0, BAR_WIDTH, True)


def test_an_unknown_change_has_no_bar() -> None:
    assert build_interval_bar(_metric(None, None), reach=0.1) is None


def test_a_change_without_an_interval_is_a_point() -> None:
    bar = build_interval_bar(_metric(None, None, change=0.05), reach=0.1)

    assert bar is not None
    assert (bar.point, bar.width) == (BAR_WIDTH * 0.75, 0.0)


def test_the_scale_includes_all_intervals_and_changes_without_one() -> None:
    metrics = [_metric(-0.2, 0.1), _metric(-0.01, 0.01), _metric(None, None)]

    assert compute_axis_limit(metrics) == pytest.approx(0.23)
    assert compute_axis_limit([*metrics, _metric(None, None, change=-0.6)]) == pytest.approx(0.69)


def test_the_scale_has_a_minimum_and_maximum() -> None:
    assert compute_axis_limit([_metric(-0.0001, 0.0001)]) == pytest.approx(0.023)
    assert compute_axis_limit([_metric(-0.5, 40.0)]) == 4.0
