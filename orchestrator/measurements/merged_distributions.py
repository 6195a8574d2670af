"""Merged distributions of points, which remain after those of single trials were removed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.fleet.models import Host
from orchestrator.results.models import HistogramKind, PointHistogram
from orchestrator.stats.histogram import Histogram as Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedDistribution:
    """A merged distribution of `trials`; `suspect` of them are suspect.

    `excluded` further trials were invalid and are not included.
    """

    distribution: Distribution | None
    trials: int
    suspect: int
    excluded: int


def load_point_histograms(
    benchmark: Benchmark, case: Case, commit: Commit, host: Host | None = None
) -> list[PointHistogram]:
    """Return the distributions of successful answers by host and version of the definition."""
    histograms = PointHistogram.objects.filter(
        case=case, commit=commit, kind=HistogramKind.OK, definition__benchmark=benchmark
    )
    if host is not None:
        histograms = histograms.filter(host=host)
    return list(histograms.select_related("host", "definition"))


def merge_points(
    points: Sequence[PointHistogram], more: Iterable[Distribution | None] = ()
) -> MergedDistribution:
    """Merge all of them, and the distributions in `more`."""
    parts = [Distribution.decode(bytes(each.encoded)) for each in points]
    parts += [each for each in more if each is not None]
    return MergedDistribution(
        distribution=Distribution.merged(parts) if parts else None,
        trials=sum(each.trials for each in points),
        suspect=sum(each.suspect for each in points),
        excluded=sum(each.excluded for each in points),
    )
