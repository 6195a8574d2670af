"""The tables of runs; one module per concept."""

from orchestrator.runs.models.backfills import Backfill
from orchestrator.runs.models.choices import (
    UNTIL_OF_CONTESTS,
    HostRole,
    Priority,
    Trigger,
    Until,
)
from orchestrator.runs.models.golden_checks import GoldenCheck
from orchestrator.runs.models.jobs import Build, HostLease, Job, Placement
from orchestrator.runs.models.runs import IdempotencyKey, Run, Variant
from orchestrator.runs.models.schedules import Schedule
from orchestrator.runs.models.trials import InterimAnalysis, Trial

__all__ = [
    "UNTIL_OF_CONTESTS",
    "Backfill",
    "Build",
    "GoldenCheck",
    "HostLease",
    "HostRole",
    "IdempotencyKey",
    "InterimAnalysis",
    "Job",
    "Placement",
    "Priority",
    "Run",
    "Schedule",
    "Trial",
    "Trigger",
    "Until",
    "Variant",
]
