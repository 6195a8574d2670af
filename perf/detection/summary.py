"""The summary of change points and of single comparisons, and their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perf.detection.build_noise import USUAL_BETWEEN, BuildErrors
from perf.detection.capacity import CapacityErrors
from perf.detection.comparisons import MARGIN, Comparisons
from perf.detection.error_rates import ErrorRates
from perf.detection.evaluation import CONFIRMING, MORE, WATCHED, Result
from perf.detection.false_claims import FalseClaims
from perf.detection.needed_blocks import NeededBlockErrors
from perf.detection.power import Power
from perf.detection.saturation import SaturationErrors
from perf.detection.scores import TOLERANCE, Score
from perf.harness.report import Requirement

PITWALL, ALERTS, OTAVA = "Pitwall", "Pitwall, alerts alone", "Otava"
IN_TIME = CONFIRMING + MORE
WANTED: dict[str, Requirement | None] = {
    "histories_without_a_change_that_alert": Requirement(relation="<", limit=0.01),
    "histories_without_a_change_with_a_candidate": None,
    "step_of_5_percent_found_in_time": Requirement(relation=">=", limit=0.95),
    "step_of_5_percent_alerted_in_time": None,
    "made_f1": None,
    "made_f1_to_otava": Requirement(relation=">", limit=1),
    "made_f1_of_alerts_to_otava": Requirement(relation=">", limit=1),
    "real_f1": None,
    "real_f1_to_otava": Requirement(relation=">", limit=1),
    "real_f1_of_alerts_to_otava": Requirement(relation=">", limit=1),
    "time_of_1000_points_to_otava": None,
    "comparisons_that_see_a_change_without_one": Requirement(relation="<=", limit=0.05),
    "comparisons_that_call_the_margin_unimportant": Requirement(relation="<=", limit=0.05),
    "comparisons_that_find_5_percent_at_2_percent_noise": Requirement(relation=">=", limit=0.95),
    "ranges_that_contain_the_needed_blocks": Requirement(relation=">=", limit=0.8),
    "needed_blocks_right_for_the_true_ones_after_5_blocks": None,
    "needed_blocks_right_for_the_true_ones_after_20_blocks": None,
    "comparisons_that_the_needed_blocks_decide": Requirement(relation=">=", limit=0.7),
    "comparisons_that_claim_a_change_by_the_order": Requirement(relation="<=", limit=0.05),
    "comparisons_that_claim_a_change_by_the_run": Requirement(relation="<=", limit=0.05),
    "repeated_runs_that_claim_a_change_without_one": Requirement(relation="<=", limit=0.05),
    "repeated_runs_that_call_the_margin_unimportant": Requirement(relation="<=", limit=0.05),
    "detectable_changes_reported_at_least": Requirement(relation=">=", limit=0.75),
    "detectable_changes_reported_at_most": Requirement(relation="<=", limit=0.85),
    "calibrations_that_promise_no_more_than_is_true": Requirement(relation=">=", limit=0.75),
    "comparisons_that_claim_a_change_by_the_build": Requirement(relation="<=", limit=0.05),
    "calibrated_comparisons_that_claim_a_change_by_the_build": Requirement(
        relation="<=", limit=0.05
    ),
    "bisections_that_name_a_wrong_commit": Requirement(relation="<=", limit=0.05),
    "bisections_that_name_no_commit": Requirement(relation="<=", limit=0.05),
    "change_of_20_percent_near_saturation_by_blocks_that_count": None,
    "error_near_saturation_with_saturated_blocks": Requirement(relation="<=", limit=0.02),
    "error_near_saturation_with_cut_values": Requirement(relation="<=", limit=0.02),
    "capacity_intervals_that_contain_it": Requirement(relation=">=", limit=0.85),
    "bias_of_the_capacity": Requirement(relation="<=", limit=0.01),
}


@dataclass(frozen=True, slots=True)
class Measurements:
    """Results by the detector's title, and those of comparisons of two commits."""

    results: Mapping[str, Result]
    comparisons: Sequence[Comparisons]
    needed: Sequence[NeededBlockErrors]
    claims: FalseClaims
    errors: ErrorRates
    power: Power
    builds: BuildErrors
    saturation: Sequence[SaturationErrors]
    capacity: Sequence[CapacityErrors]


def get_measured(data: Measurements) -> dict[str, float]:
    """Return the measured values with the keys of WANTED."""
    return {
        **_get_change_points(data.results),
        **_get_comparisons(data),
        **_get_false_claims(data),
        **_get_builds(data.builds),
        **_get_saturation(data),
    }


def _get_change_points(results: Mapping[str, Result]) -> dict[str, float]:
    ours, alerts = results[PITWALL], results[ALERTS]
    otava = next(each for title, each in results.items() if title.startswith(OTAVA))
    return {
        "histories_without_a_change_that_alert": alerts.false_histories,
        "histories_without_a_change_with_a_candidate": ours.false_histories,
        "step_of_5_percent_found_in_time": ours.compute_detected_share(IN_TIME),
        "step_of_5_percent_alerted_in_time": alerts.compute_detected_share(IN_TIME),
        "made_f1": ours.made.f1,
        "made_f1_to_otava": _compute_ratio(ours.made, otava.made),
        "made_f1_of_alerts_to_otava": _compute_ratio(alerts.made, otava.made),
        "real_f1": ours.real.f1,
        "real_f1_to_otava": _compute_ratio(ours.real, otava.real),
        "real_f1_of_alerts_to_otava": _compute_ratio(alerts.real, otava.real),
        "time_of_1000_points_to_otava": ours.ms_per_1000 / otava.ms_per_1000,
    }


def _get_comparisons(data: Measurements) -> dict[str, float]:
    return {
        "comparisons_that_see_a_change_without_one": max(
            each.changed for each in data.comparisons if each.effect == 0
        ),
        "comparisons_that_call_the_margin_unimportant": max(
            each.trivial + each.equivalent for each in data.comparisons if each.effect == MARGIN
        ),
        "comparisons_that_find_5_percent_at_2_percent_noise": next(
            each.regressed for each in data.comparisons if (each.noise, each.effect) == (0.02, 0.05)
        ),
        "ranges_that_contain_the_needed_blocks": min(each.covered for each in data.needed),
        "needed_blocks_right_for_the_true_ones_after_5_blocks": data.needed[0].right,
        "needed_blocks_right_for_the_true_ones_after_20_blocks": data.needed[-1].right,
        "comparisons_that_the_needed_blocks_decide": min(each.decided for each in data.needed),
    }


def _get_false_claims(data: Measurements) -> dict[str, float]:
    return {
        "comparisons_that_claim_a_change_by_the_order": max(
            each.claimed for each in data.claims.orders
        ),
        "comparisons_that_claim_a_change_by_the_run": max(
            each.claimed for each in data.claims.runs
        ),
        "repeated_runs_that_claim_a_change_without_one": max(data.errors.claimed.values()),
        "repeated_runs_that_call_the_margin_unimportant": max(data.errors.proven.values()),
        "detectable_changes_reported_at_least": min(data.power.reported.values()),
        "detectable_changes_reported_at_most": max(data.power.reported.values()),
        "calibrations_that_promise_no_more_than_is_true": data.power.assured,
    }


def _get_builds(builds: BuildErrors) -> dict[str, float]:
    return {
        "comparisons_that_claim_a_change_by_the_build": max(
            each.claimed for each in builds.claims if each.builds > 1
        ),
        "calibrated_comparisons_that_claim_a_change_by_the_build": max(
            each.claimed for each in builds.calibrated
        ),
        "bisections_that_name_a_wrong_commit": max(
            each.wrong for each in builds.bisections if each.builds > 1
        ),
        "bisections_that_name_no_commit": max(
            each.undecided
            for each in builds.bisections
            if each.builds > 1 and each.between <= USUAL_BETWEEN
        ),
    }


def _get_saturation(data: Measurements) -> dict[str, float]:
    return {
        "change_of_20_percent_near_saturation_by_blocks_that_count": next(
            each.counted for each in data.saturation if each.change == 0.2
        ),
        "error_near_saturation_with_saturated_blocks": max(
            abs(each.included - each.change) for each in data.saturation
        ),
        "error_near_saturation_with_cut_values": max(
            abs(each.cut - each.change) for each in data.saturation
        ),
        "capacity_intervals_that_contain_it": min(each.covered for each in data.capacity),
        "bias_of_the_capacity": max(abs(each.bias) for each in data.capacity),
    }


def list_details(data: Measurements) -> dict[str, Any]:
    """Return the underlying values, for the file of results."""
    return {
        "tolerance_points": TOLERANCE,
        "detectors": {title: _describe(each) for title, each in data.results.items()},
        "comparisons": [asdict(each) for each in data.comparisons],
        "needed_blocks": [asdict(each) for each in data.needed],
        "false_claims": {
            "orders": [asdict(each) for each in data.claims.orders],
            "runs": [asdict(each) for each in data.claims.runs],
        },
        "error_rates": asdict(data.errors),
        "power": {
            "reported": [
                {"noise": noise, "blocks": blocks, "family": family, "share": share}
                for (noise, blocks, family), share in data.power.reported.items()
            ],
            "assured": data.power.assured,
            "average": data.power.average,
        },
        "builds": {
            "claims": [asdict(each) for each in data.builds.claims],
            "calibrated": [asdict(each) for each in data.builds.calibrated],
            "bisections": [asdict(each) for each in data.builds.bisections],
        },
        "saturation": [asdict(each) for each in data.saturation],
        "capacity": [asdict(each) for each in data.capacity],
    }


def _compute_ratio(ours: Score, theirs: Score) -> float:
    return ours.f1 / max(theirs.f1, 1e-9)


def _describe(result: Result) -> dict[str, Any]:
    return {
        "made": _describe_score(result.made),
        "real": _describe_score(result.real),
        "false_histories": round(result.false_histories, 4),
        "false_alarms_per_1000": round(result.false_alarms_per_1000, 3),
        "found_within_points": {
            points: round(result.compute_detected_share(points), 4)
            for points in range(1, WATCHED + 1)
        },
        "ms_per_1000_points": round(result.ms_per_1000, 2),
    }


def _describe_score(score: Score) -> dict[str, Any]:
    shares = {name: round(share, 4) for name, share in score.shares.items()}
    return {**asdict(score), **shares}
