"""Calibrations: the noise of a host and the changes that it can detect."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import CommitOut, Text, Whole, build_commit_out
from orchestrator.api.schemas.comparisons import ValidityIssueOut, build_validity_issues_out
from orchestrator.calibration.sensitivity import Sensitivity, list_sensitivities
from orchestrator.measurements.validity_issues import RunValidity
from orchestrator.results.models import Calibration
from orchestrator.runs.calibration import (
    DEFAULT_PAIRS,
    MAX_PAIRS,
    MIN_PAIRS,
    NewCalibration,
)
from orchestrator.stats.build_noise import BuildNoise


class CalibrationIn(Schema, extra="forbid"):
    """Omitted fields default to those of the host's golden run. Without one `benchmark` is
    required, and the commit defaults to the newest one of the project's default branch."""

    benchmark: Text | None = None
    project: Text | None = Field(
        None, description="Required only if two projects have a benchmark of this name."
    )
    commit: Text | None = Field(None, description="Branch, tag or hash.")
    pairs: Annotated[Whole, Field(ge=MIN_PAIRS, le=MAX_PAIRS)] = Field(
        DEFAULT_PAIRS, description="Pairs of rounds of the same commit."
    )

    def build_calibration(self) -> NewCalibration:
        return NewCalibration(
            benchmark=self.benchmark or "",
            project=self.project,
            commit=self.commit or "",
            pairs=self.pairs,
        )


class SmallestChangeOut(Schema):
    """The change, as a share, that this number of usable blocks detects with a power of 0.8."""

    blocks: int
    change: float


class BuildNoiseOut(Schema):
    """The standard deviation `sigma` between `builds` builds of the commit, as a log, with its 95 %
    interval. Comparisons of single builds on the host add it to their intervals."""

    builds: int
    sigma: float
    low: float
    high: float


class NoiseOut(Schema):
    """Noise of one metric of a case: the standard deviation `sigma` of ln(second / first) over the
    pairs, and their `mean`, each with its 95 % interval. If the interval of the mean excludes 0,
    the metric `drifts`. `excluded` pairs do not count. `rounds_for_twice_the_margin` is null if 100
    do not suffice. `build_noise` is null if the commit was built once."""

    case: str
    label: str
    metric: str
    pairs: int
    excluded: int
    sigma: float
    low: float
    high: float
    mean: float
    mean_low: float
    mean_high: float
    drifts: bool
    smallest_changes: list[SmallestChangeOut]
    rounds_for_twice_the_margin: int | None
    build_noise: BuildNoiseOut | None


class CalibrationOut(Schema):
    """`present`: the host has not changed since. If `noise` is empty, `message` has the reason.

    `suspect` of the run's trials are suspect; `excluded` are invalid or failed. `validity_issues`
    are the reasons.
    """

    run: UUID
    benchmark: str
    project: str
    commit: CommitOut
    at: datetime
    present: bool
    message: str
    noise: list[NoiseOut]
    suspect: int
    excluded: int
    validity_issues: list[ValidityIssueOut]


class CalibrationPage(Schema):
    calibrations: list[CalibrationOut]
    next: str | None


def build_calibration_out(
    calibration: Calibration, epoch: int, validity: RunValidity
) -> CalibrationOut:
    """`epoch` is the current one of the host; `validity` is that of the calibration's run."""
    return CalibrationOut(
        run=calibration.run_id,
        benchmark=calibration.benchmark.slug,
        project=calibration.benchmark.project.slug,
        commit=build_commit_out(calibration.commit),
        at=calibration.at,
        present=calibration.epoch == epoch,
        message=calibration.message,
        noise=[_build_noise_out(sight) for sight in list_sensitivities(calibration)],
        suspect=validity.suspect,
        excluded=validity.invalid + validity.failed,
        validity_issues=build_validity_issues_out(validity.validity_issues),
    )


def _build_noise_out(sight: Sensitivity) -> NoiseOut:
    noise, builds = sight.noise, sight.build_noise
    return NoiseOut(
        case=sight.case,
        label=sight.label,
        metric=sight.metric.key,
        pairs=noise.pairs,
        excluded=noise.excluded,
        sigma=noise.sigma,
        low=noise.low,
        high=noise.high,
        mean=noise.mean,
        mean_low=noise.mean_low,
        mean_high=noise.mean_high,
        drifts=noise.drifts,
        smallest_changes=[
            SmallestChangeOut(blocks=blocks, change=change) for blocks, change in sight.smallest
        ],
        rounds_for_twice_the_margin=sight.needed,
        build_noise=None if builds is None else _build_build_noise_out(builds),
    )


def _build_build_noise_out(noise: BuildNoise) -> BuildNoiseOut:
    return BuildNoiseOut(builds=noise.builds, sigma=noise.sigma, low=noise.low, high=noise.high)
