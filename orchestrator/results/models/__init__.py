"""The tables of results; one module an idea."""

from orchestrator.results.models.hosts import Calibration, GoldenOutcome, GoldenVerdict
from orchestrator.results.models.references import ReferenceResult, ReferenceSource, SavedReport
from orchestrator.results.models.retention import (
    Pin,
    PointHistogram,
    Removal,
    Removed,
    Retention,
)
from orchestrator.results.models.series import Point, Reading, Series
from orchestrator.results.models.trials import (
    Artifact,
    Histogram,
    HistogramKind,
    LoadResult,
    Metric,
)

__all__ = [
    "Artifact",
    "Calibration",
    "GoldenOutcome",
    "GoldenVerdict",
    "Histogram",
    "HistogramKind",
    "LoadResult",
    "Metric",
    "Pin",
    "Point",
    "PointHistogram",
    "Reading",
    "ReferenceResult",
    "ReferenceSource",
    "Removal",
    "Removed",
    "Retention",
    "SavedReport",
    "Series",
]
