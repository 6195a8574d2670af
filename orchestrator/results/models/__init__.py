"""The tables of results; one module per concept."""

from orchestrator.results.models.annotations import Annotation
from orchestrator.results.models.build_noise import HostBuildNoise
from orchestrator.results.models.calibrations import Calibration
from orchestrator.results.models.changes import (
    CHANGE_JUDGED,
    CHANGE_REAL,
    Baseline,
    Bisection,
    BisectionState,
    ChangedSeries,
    ChangeKind,
    ChangePoint,
    ChangeState,
    SeriesDetection,
)
from orchestrator.results.models.imports import (
    IMPORT_ENDED,
    ImportPart,
    ImportState,
    ResultImport,
    UnknownCommits,
)
from orchestrator.results.models.retention import (
    Pin,
    PointHistogram,
    Removal,
    RemovalKind,
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
    "CHANGE_JUDGED",
    "CHANGE_REAL",
    "IMPORT_ENDED",
    "Annotation",
    "Artifact",
    "Baseline",
    "Bisection",
    "BisectionState",
    "Calibration",
    "ChangeKind",
    "ChangePoint",
    "ChangeState",
    "ChangedSeries",
    "Histogram",
    "HistogramKind",
    "HostBuildNoise",
    "ImportPart",
    "ImportState",
    "LoadResult",
    "Metric",
    "Pin",
    "Point",
    "PointHistogram",
    "Reading",
    "Removal",
    "RemovalKind",
    "ResultImport",
    "Retention",
    "Series",
    "SeriesDetection",
    "UnknownCommits",
]
