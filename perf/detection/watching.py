"""Watching over time: golden runs, confirmation runs, culprits, and points of unequal precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.stats.confirmation import Confirmation
from orchestrator.stats.culprit_share import HALF
from perf.detection.confirmations import (
    EARLIER_RUNS,
    ConfirmationRates,
    Confirmations,
    measure_confirmations,
)
from perf.detection.culprits import Culprits, measure_culprits
from perf.detection.evaluation import Extent
from perf.detection.golden_runs import DRIFT, IN_TIME, GoldenRuns, measure_golden_runs
from perf.detection.precision import FalseAlarms, measure_false_alarms
from perf.harness.report import Requirement, render_table

WANTED: dict[str, Requirement | None] = {
    "quarantines_of_an_unchanged_host_in_10_years": Requirement(relation="<=", limit=1),
    "slow_drifts_reported_of_an_unchanged_host_in_10_years": Requirement(relation="<=", limit=1),
    "slow_drifts_reported_in_60_runs": Requirement(relation=">=", limit=0.95),
    "slow_drifts_from_the_first_run_reported_in_60_runs": None,
    "real_changes_refuted": Requirement(relation="<=", limit=0.05),
    "real_changes_refuted_that_were_detected_larger": None,
    "changes_without_an_effect_called_real": Requirement(relation="<=", limit=0.05),
    "changes_without_an_effect_called_real_by_one_of_10_runs": Requirement(
        relation="<=", limit=0.05
    ),
    "histories_of_unequal_points_that_alert": Requirement(relation="<", limit=0.01),
    "histories_of_unequal_points_with_a_candidate": None,
    "one_commit_blamed_for_two_halves": Requirement(relation="<=", limit=0.05),
    "single_culprits_found": Requirement(relation=">=", limit=0.9),
    "steps_to_a_single_culprit_of_32": None,
}


@dataclass(frozen=True, slots=True)
class Watching:
    golden: Sequence[GoldenRuns]
    confirmations: ConfirmationRates
    culprits: Sequence[Culprits]
    unequal: Mapping[str, FalseAlarms]


def measure_watching(extent: Extent, seed: int) -> Watching:
    return Watching(
        golden=measure_golden_runs(extent.golden_hosts, extent.golden_years, seed),
        confirmations=measure_confirmations(extent.confirmations, seed),
        culprits=measure_culprits(extent.searches, seed),
        unequal=measure_false_alarms(extent.unequal, seed),
    )


def get_measured(data: Watching) -> dict[str, float]:
    """Return the measured values with the keys of WANTED."""
    alone = data.culprits[0]
    grid = data.confirmations.grid
    return {
        "quarantines_of_an_unchanged_host_in_10_years": max(
            each.quarantines for each in data.golden
        ),
        "slow_drifts_reported_of_an_unchanged_host_in_10_years": max(
            each.slow_alarms for each in data.golden
        ),
        "slow_drifts_reported_in_60_runs": min(each.reported for each in data.golden),
        "slow_drifts_from_the_first_run_reported_in_60_runs": min(
            each.reported_from_the_first for each in data.golden
        ),
        "real_changes_refuted": max(
            each.shares[Confirmation.REFUTED] for each in grid if each.true == each.detected
        ),
        "real_changes_refuted_that_were_detected_larger": max(
            each.shares[Confirmation.REFUTED] for each in grid if 0 < each.true < each.detected
        ),
        "changes_without_an_effect_called_real": max(
            _count_real(each) for each in grid if not each.true
        ),
        "changes_without_an_effect_called_real_by_one_of_10_runs": data.confirmations.any_confirmed,
        "histories_of_unequal_points_that_alert": max(
            each.alerts for each in data.unequal.values()
        ),
        "histories_of_unequal_points_with_a_candidate": max(
            each.candidates for each in data.unequal.values()
        ),
        "one_commit_blamed_for_two_halves": next(
            each.blamed for each in data.culprits if each.share == HALF
        ),
        "single_culprits_found": alone.right,
        "steps_to_a_single_culprit_of_32": alone.steps,
    }


def list_details(data: Watching) -> dict[str, Any]:
    return {
        "golden_runs": [asdict(each) for each in data.golden],
        "confirmations": [asdict(each) for each in data.confirmations.grid],
        "confirmed_by_one_of_several": data.confirmations.any_confirmed,
        "culprits": [asdict(each) for each in data.culprits],
        "unequal_points": {kind: asdict(each) for kind, each in data.unequal.items()},
    }


def format_text(data: Watching) -> str:
    """Return the tables for people."""
    many = f"{data.confirmations.any_confirmed:.1%} are called real by one of {EARLIER_RUNS} runs"
    parts = [
        _format_golden(data.golden),
        f"{_format_confirmations(data.confirmations.grid)}\n{many}",
    ]
    return "\n\n".join([*parts, _format_culprits(data.culprits), _format_unequal(data.unequal)])


def _count_real(each: Confirmations) -> float:
    return each.shares[Confirmation.CONFIRMED] + each.shares[Confirmation.SMALL]


def _format_golden(many: Sequence[GoldenRuns]) -> str:
    rows = [
        (
            f"noise {each.noise:.1%}",
            f"{each.quarantines:.1f}",
            f"{each.slow_alarms:.1f}",
            f"{each.reported:.1%}",
            f"{each.reported_from_the_first:.1%}",
        )
        for each in many
    ]
    drift = f"drift of {DRIFT:.1%} a run reported in {IN_TIME}"
    head = ("Golden runs, 10 years", "quarantines", "slow drifts", drift, "from the first run")
    return render_table(head, rows)


def _format_confirmations(many: Sequence[Confirmations]) -> str:
    rows = [
        (
            f"noise {each.noise:.0%}, margin {each.margin:.0%}, "
            f"detected {each.detected:.1%}, true {each.true:.1%}",
            *(f"{each.shares[result]:.1%}" for result in Confirmation),
        )
        for each in many
    ]
    return render_table(("Confirmation runs", *map(str, Confirmation)), rows)


def _format_culprits(many: Sequence[Culprits]) -> str:
    rows = [
        (
            f"first of two has {each.share:.0%}" if each.share < 1 else "one culprit",
            f"{each.blamed:.1%}",
            f"{each.right:.1%}",
            f"{each.partly:.1%}",
            f"{each.steps:.1f}",
        )
        for each in many
    ]
    head = (
        "Bisections",
        "one has all of the blame",
        "the right one",
        "some of the effect",
        "steps",
    )
    return render_table(head, rows)


def _format_unequal(many: Mapping[str, FalseAlarms]) -> str:
    rows = [(kind, f"{each.candidates:.1%}", f"{each.alerts:.1%}") for kind, each in many.items()]
    return render_table(("Points of unequal precision", "false candidates", "false alerts"), rows)
