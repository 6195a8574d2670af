"""Calibrations: what a host measured against itself, and which changes it can see by that."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import CommitOut, Text, Whole, commit_out
from orchestrator.api.schemas.comparisons import ValidityIssueOut, validity_issues_out
from orchestrator.calibration.sensitivity import Sight, sights_of
from orchestrator.measurements.validity_issues import RunValidity
from orchestrator.results.models import Calibration
from orchestrator.runs.calibration import (
    DEFAULT_PAIRS,
    MAX_PAIRS,
    MIN_PAIRS,
    NewCalibration,
)


class CalibrationIn(Schema, extra="forbid"):
    """What is left out is that of the host's golden job; without one a benchmark is needed, and the
    commit is the newest one of the project's default branch."""

    benchmark: Text | None = None
    project: Text | None = Field(
        None, description="Required only if two projects have a benchmark of this name."
    )
    commit: Text | None = Field(None, description="Branch, tag or hash.")
    pairs: Annotated[Whole, Field(ge=MIN_PAIRS, le=MAX_PAIRS)] = Field(
        DEFAULT_PAIRS, description="Pairs of rounds of the same commit."
    )

    def calibration(self) -> NewCalibration:
        return NewCalibration(
            benchmark=self.benchmark or "",
            project=self.project,
            commit=self.commit or "",
            pairs=self.pairs,
        )


class SmallestChangeOut(Schema):
    """The change, as a share, that so many rounds find four times in five."""

    rounds: int
    change: float


class NoiseOut(Schema):
    """Noise of one metric of a case: the standard deviation `sigma` of ln(second / first) over the
    pairs, with its 95 % interval, and their `mean`, with its own; where 0 is not in that one, the
    metric `drifts`. `rounds_for_5_percent` is null where 200 do not suffice."""

    case: str
    label: str
    metric: str
    pairs: int
    sigma: float
    low: float
    high: float
    mean: float
    mean_low: float
    mean_high: float
    drifts: bool
    smallest_changes: list[SmallestChangeOut]
    rounds_for_5_percent: int | None


class CalibrationOut(Schema):
    """`present`: the host has not changed since. Where `noise` is empty, `message` says why.

    Of the run's trials, so many are `suspect`; invalid and failed ones are `left_out`.
    `validity_issues` say
    why.
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
    left_out: int
    validity_issues: list[ValidityIssueOut]


class CalibrationPage(Schema):
    calibrations: list[CalibrationOut]
    next: str | None


def calibration_out(calibration: Calibration, epoch: int, validity: RunValidity) -> CalibrationOut:
    """`epoch` is the present one of the host; `validity` is that of the calibration's run."""
    return CalibrationOut(
        run=calibration.run_id,
        benchmark=calibration.benchmark.slug,
        project=calibration.benchmark.project.slug,
        commit=commit_out(calibration.commit),
        at=calibration.at,
        present=calibration.epoch == epoch,
        message=calibration.message,
        noise=[_noise_out(sight) for sight in sights_of(calibration)],
        suspect=validity.suspect,
        left_out=validity.invalid + validity.failed,
        validity_issues=validity_issues_out(validity.validity_issues),
    )


def _noise_out(sight: Sight) -> NoiseOut:
    noise = sight.noise
    return NoiseOut(
        case=sight.case,
        label=sight.label,
        metric=sight.metric.key,
        pairs=noise.pairs,
        sigma=noise.sigma,
        low=noise.low,
        high=noise.high,
        mean=noise.mean,
        mean_low=noise.mean_low,
        mean_high=noise.mean_high,
        drifts=noise.drifts,
        smallest_changes=[
            SmallestChangeOut(rounds=blocks, change=change) for blocks, change in sight.smallest
        ],
        rounds_for_5_percent=sight.needed,
    )
