"""Latency distributions of many trials, merged and read at percentiles; never averaged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.measurements.removals import check_kept
from orchestrator.results.models import Histogram, HistogramKind, LoadResult, RemovalKind
from orchestrator.runs.models import Trial
from orchestrator.stats.histogram import Histogram as Distribution
from orchestrator.stats.summary import SUPPORTING_REQUESTS, is_supported

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
MAX_ASKED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """Latency in seconds at `percentiles` (0 to 100), of all valid trials merged."""

    percentiles: tuple[float, ...]
    seconds: tuple[float | None, ...]
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileReading:
    """One percentile; `seconds` is None if there are fewer than `needed` requests."""

    percentile: float
    seconds: float | None
    needed: int


def merge_trials(trials: Sequence[UUID], kind: str = HistogramKind.OK) -> Distribution | None:
    """Merge the distributions of all requests of these trials; None if there is none."""
    rows = Histogram.objects.filter(trial__in=trials, kind=kind).values_list("encoded", flat=True)
    parts = [Distribution.decode(bytes(row)) for row in rows]
    return Distribution.merged(parts) if parts else None


def load_distribution(
    trial: Trial, *, kind: str = HistogramKind.OK, load: int | None = None
) -> Distribution | None:
    """Return the distribution of the whole trial, or of one of several loads, counted from 0.

    None without requests. Raise NotFoundError if the trial has no load of that number, and
    GoneError if its distributions were removed. A single load has a distribution of successful
    answers only.
    """
    if load is None:
        whole = merge_trials([trial.pk], kind)
        if whole is None:
            check_kept(trial.job.run_id, RemovalKind.DISTRIBUTIONS)
        return whole
    result = LoadResult.objects.filter(trial=trial, number=load).first()
    if result is None:
        check_kept(trial.job.run_id, RemovalKind.DISTRIBUTIONS)
        raise NotFoundError(f"this trial has no separate load {load}; omit load")
    if kind != HistogramKind.OK:
        raise InvalidRequestError(
            "a single load only has the distribution of good answers", field="kind"
        )
    return Distribution.decode(bytes(result.encoded)) if result.encoded else None


def parse_percentiles(text: str) -> tuple[float, ...]:
    """Parse `50,99.5` as distinct numbers; InvalidRequestError gives the reason."""
    values: dict[float, None] = {}
    for word in (part.strip() for part in text.split(",")):
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not 0 < value < 100:
            raise InvalidRequestError(
                f"{word or '(nothing)'}: expected numbers above 0 and below 100, such as 50,99.5; "
                "the metric latency.max is the slowest answer",
                field="percentiles",
            )
        values[value] = None
    if len(values) > MAX_ASKED:
        raise InvalidRequestError(
            f"{len(values)} percentiles: ask for at most {MAX_ASKED} at once", field="percentiles"
        )
    return tuple(values)


def count_needed_requests(percentile: float) -> int:
    """Return the smallest number of requests that supports a percentile below 100."""
    # Round first: 100 − 99.9 is slightly less than 0.1 in floating point.
    return math.ceil(round(100 * SUPPORTING_REQUESTS / (100 - percentile), 6))


def read_percentiles(
    distribution: Distribution | None, percentiles: Sequence[float]
) -> tuple[PercentileReading, ...]:
    """Read the percentiles in the given order; each is None without a distribution."""
    return tuple(
        PercentileReading(
            percentile=each,
            seconds=_read_percentile(distribution, each),
            needed=count_needed_requests(each),
        )
        for each in percentiles
    )


def compute_curve(distribution: Distribution | None) -> LatencyCurve | None:
    """Return the latency at PERCENTILES; None for a percentile with too few requests."""
    if distribution is None:
        return None
    return LatencyCurve(
        percentiles=PERCENTILES,
        seconds=tuple(_read_percentile(distribution, each) for each in PERCENTILES),
        requests=distribution.total_count,
    )


def encode_histogram(distribution: Distribution | None) -> bytes:
    """Return the V2 compressed encoding of HdrHistogram; NotFoundError without requests."""
    if distribution is None or not distribution.total_count:
        raise NotFoundError("there is no such distribution: the trial has no requests of this kind")
    return distribution.encode()


def _read_percentile(distribution: Distribution | None, percentile: float) -> float | None:
    if distribution is None or not is_supported(percentile, distribution.total_count):
        return None
    return distribution.percentile(percentile) / 1e6
