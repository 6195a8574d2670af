"""Latency distributions of many trials, merged and read at percentiles; never averaged."""

from collections.abc import Sequence
from uuid import UUID

from orchestrator.results.models import Histogram, HistogramKind
from orchestrator.results.reports import LatencyCurve
from orchestrator.stats.histogram import Histogram as Distribution
from orchestrator.stats.summary import is_supported

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)


def merged(trials: Sequence[UUID], kind: str = HistogramKind.OK) -> Distribution | None:
    """The distribution of all requests of these trials; None where there is none."""
    rows = Histogram.objects.filter(trial__in=trials, kind=kind).values_list("encoded", flat=True)
    parts = [Distribution.decode(bytes(row)) for row in rows]
    return Distribution.merged(parts) if parts else None


def latency_curve(trials: Sequence[UUID]) -> LatencyCurve | None:
    """The merged latency at PERCENTILES; None at one that too few requests support."""
    distribution = merged(trials)
    if distribution is None:
        return None
    count = distribution.total_count
    return LatencyCurve(
        percentiles=PERCENTILES,
        seconds=tuple(
            distribution.percentile(q) / 1e6 if is_supported(q, count) else None
            for q in PERCENTILES
        ),
        requests=count,
    )
