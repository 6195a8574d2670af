"""The effect of the order within blocks, in words."""

from collections.abc import Iterator, Sequence

from cli.pitwall.units import format_change, format_interval
from orchestrator.comparisons.report import CaseComparison, MetricComparison


def build_order_notes(cases: Sequence[CaseComparison]) -> Iterator[str]:
    """Yield a note if the order within blocks matters more than the margin of a primary metric."""
    affected = [
        metric
        for case in cases
        for metric in case.metrics
        if metric.primary and _exceeds_margin(metric)
    ]
    if not affected:
        return
    largest = max(affected, key=_measure_effect)
    effect = largest.result.order_effect
    assert effect is not None
    title = f"{largest.title[0].lower()}{largest.title[1:]}"
    subject = "1 metric depends" if len(affected) == 1 else f"{len(affected)} metrics depend"
    yield (
        f"{subject} on the order of the trials in a block: from the first to the second, {title} "
        f"changes by {format_change(effect.change)} "
        f"({format_interval((effect.low, effect.high))}). This is removed from the changes."
    )


def _measure_effect(metric: MetricComparison) -> float:
    effect = metric.result.order_effect
    return 0.0 if effect is None else abs(effect.change)


def _exceeds_margin(metric: MetricComparison) -> bool:
    """Return whether the effect is beyond the margin, and its interval excludes zero."""
    effect = metric.result.order_effect
    if effect is None or effect.low <= 0 <= effect.high:
        return False
    return _measure_effect(metric) > metric.margin
