"""The summary of change points and of single comparisons, and their targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perf.detection.build_noise import USUAL_BETWEEN, Bisections, BuildClaims, BuildErrors
from perf.detection.capacity import CapacityErrors
from perf.detection.comparisons import MARGIN, Comparisons
from perf.detection.error_rates import RERUNS, ErrorRates
from perf.detection.evaluation import CONFIRMING, MORE, WATCHED, Result
from perf.detection.false_claims import FalseClaims, OrderClaims, RunClaims
from perf.detection.needed_blocks import FACTOR, NeededBlockErrors
from perf.detection.power import Power
from perf.detection.saturation import SaturationErrors
from perf.detection.scores import TOLERANCE, Score
from perf.harness.report import Requirement, render_table

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
    ours, alerts = data.results[PITWALL], data.results[ALERTS]
    otava = next(each for title, each in data.results.items() if title.startswith(OTAVA))
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
        "comparisons_that_claim_a_change_by_the_build": max(
            each.claimed for each in data.builds.claims if each.builds > 1
        ),
        "calibrated_comparisons_that_claim_a_change_by_the_build": max(
            each.claimed for each in data.builds.calibrated
        ),
        "bisections_that_name_a_wrong_commit": max(
            each.wrong for each in data.builds.bisections if each.builds > 1
        ),
        "bisections_that_name_no_commit": max(
            each.undecided
            for each in data.builds.bisections
            if each.builds > 1 and each.between <= USUAL_BETWEEN
        ),
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


def format_text(data: Measurements) -> str:
    """Return the tables for people."""
    parts = [
        _format_scores(data),
        _format_alarms(data),
        _format_comparisons(data.comparisons),
        _format_needed(data.needed),
    ]
    parts += [_format_order_claims(data.claims.orders), _run_claims(data.claims.runs)]
    parts += [_format_errors(data.errors), _format_power(data.power)]
    parts += [
        _build_claims("False claims by the build", data.builds.claims),
        _build_claims("With the noise of a calibration", data.builds.calibrated),
        _format_bisections(data.builds.bisections),
    ]
    parts += [_format_saturation(data.saturation), _format_capacity(data.capacity)]
    return "\n\n".join(parts)


def _format_saturation(measured: Sequence[SaturationErrors]) -> str:
    rows = [
        (
            f"{each.change:+.0%}",
            f"{each.lost:.1%}",
            *(f"{value:+.1%}" for value in (each.counted, each.included, each.cut)),
        )
        for each in measured
    ]
    head = ("Near saturation", "blocks lost", "without them", "with them", "with cut values")
    return render_table(head, rows)


def _format_capacity(measured: Sequence[CapacityErrors]) -> str:
    rows = [
        (
            f"slope {each.slope:.0%}",
            f"{each.bias:+.2%}",
            f"{each.error:.2%}",
            f"{each.covered:.1%}",
            f"{each.width:.1%}",
            f"{each.converged:.0%}",
            f"{each.probes:.1f}",
        )
        for each in measured
    ]
    head = ("Capacity", "bias", "error", "covered", "interval", "converged", "probes")
    return render_table(head, rows)


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
        "made": {**asdict(result.made), **_round_shares(result.made)},
        "real": {**asdict(result.real), **_round_shares(result.real)},
        "false_histories": round(result.false_histories, 4),
        "false_alarms_per_1000": round(result.false_alarms_per_1000, 3),
        "found_within_points": {
            points: round(result.compute_detected_share(points), 4)
            for points in range(1, WATCHED + 1)
        },
        "ms_per_1000_points": round(result.ms_per_1000, 2),
    }


def _round_shares(score: Score) -> dict[str, float]:
    return {
        "precision": round(score.precision, 4),
        "recall": round(score.recall, 4),
        "f1": round(score.f1, 4),
    }


def _format_scores(data: Measurements) -> str:
    rows = [
        (
            title,
            *(f"{share:.3f}" for score in (each.made, each.real) for share in _list_shares(score)),
        )
        for title, each in data.results.items()
    ]
    head = ("Changes found", "made: precision", "recall", "F1", "real: precision", "recall", "F1")
    return render_table(head, rows)


def _list_shares(score: Score) -> tuple[float, float, float]:
    return score.precision, score.recall, score.f1


def _format_alarms(data: Measurements) -> str:
    rows = [
        (
            title,
            f"{100 * each.false_histories:.1f} %",
            f"{each.false_alarms_per_1000:.2f}",
            *(
                f"{100 * each.compute_detected_share(points):.0f} %"
                for points in (CONFIRMING, IN_TIME)
            ),
            "-" if math.isnan(each.median_delay) else f"{each.median_delay:.0f}",
            f"{each.ms_per_1000:.1f}",
        )
        for title, each in data.results.items()
    ]
    within = (f"5 % found in {CONFIRMING}", f"in {IN_TIME}", "points")
    return render_table(("", "false histories", "alarms/1,000", *within, "ms/1,000"), rows)


def _format_comparisons(comparisons: Sequence[Comparisons]) -> str:
    rows = [
        (
            f"noise {100 * each.noise:.0f} %, change +{100 * each.effect:.0f} %",
            *(
                f"{100 * share:.1f} %"
                for share in (
                    each.regressed,
                    each.changed,
                    each.equivalent,
                    max(0.0, 1 - each.changed - each.equivalent),
                )
            ),
            f"{each.blocks:.1f}",
        )
        for each in comparisons
    ]
    head = ("Comparisons", "regressed", "any change", "equivalent", "inconclusive", "blocks")
    return render_table(head, rows)


def _format_needed(many: Sequence[NeededBlockErrors]) -> str:
    rows = [
        (
            str(each.present),
            str(each.comparisons),
            f"{each.covered:.1%}",
            f"{each.open_ranges:.1%}",
            f"{each.width:.1f}",
            *(
                f"{share:.1%}"
                for share in (each.right, each.low, each.high, each.decided, each.out_of_reach)
            ),
        )
        for each in many
    ]
    head = (
        f"Needed blocks, within a factor of {FACTOR}: present blocks",
        "inconclusive",
        "in the range",
        "open ranges",
        "width of others",
        "right",
        "too low",
        "too high",
        "decided with them",
        "out of reach",
    )
    return render_table(head, rows)


def _format_order_claims(many: Sequence[OrderClaims]) -> str:
    rows = [
        (
            f"noise {each.noise:.1%}, order effect +{each.effect:.0%}",
            *(f"{share:.1%}" for share in (each.claimed, each.claimed_if_random, each.covered)),
        )
        for each in many
    ]
    head = ("False claims by the order", "balanced", "random, not analysed", "effect in interval")
    return render_table(head, rows)


def _run_claims(many: Sequence[RunClaims]) -> str:
    rows = [
        (
            f"noise between runs {each.between:.0%}, {each.runs} a side",
            f"{each.claimed:.1%}",
            f"{each.unconfirmed:.1%}",
        )
        for each in many
    ]
    return render_table(("False claims by the run", "regressed or improved", "not confirmed"), rows)


def _format_errors(errors: ErrorRates) -> str:
    rows = [
        (steps, f"{share:.1%}", f"{errors.proven[steps]:.1%}")
        for steps, share in errors.claimed.items()
    ]
    return render_table((f"{RERUNS} further runs", "false change", "margin unimportant"), rows)


def _format_power(power: Power) -> str:
    families = sorted({family for _, _, family in power.reported})
    rows = [
        (
            f"noise {noise:.1%}, {blocks} blocks",
            *(f"{power.reported[noise, blocks, family]:.1%}" for family in families),
        )
        for noise, blocks in dict.fromkeys(key[:2] for key in power.reported)
    ]
    head = ("Detectable changes reported", *(f"one of {family}" for family in families))
    calibrated = f"{power.assured:.1%} of calibrations promise no more than is true"
    return f"{render_table(head, rows)}\n{calibrated}; on average {power.average:.1%} are reported"


def _build_claims(title: str, many: Sequence[BuildClaims]) -> str:
    rows = [
        (
            f"noise {each.noise:.0%}, between builds {each.between:.1%}, {each.builds} a side",
            f"{each.claimed:.1%}",
            f"{each.found:.1%}",
        )
        for each in many
    ]
    return render_table((title, "regressed or improved", "5 % found"), rows)


def _format_bisections(many: Sequence[Bisections]) -> str:
    rows = [
        (
            f"between builds {each.between:.1%}, {each.builds} a step",
            f"{each.wrong:.1%}",
            f"{each.undecided:.1%}",
            f"{each.steps:.1f}",
            f"{each.blocks:.0f}",
            f"{each.builds_made:.0f}",
        )
        for each in many
    ]
    return render_table(("Bisections", "wrong", "no commit", "steps", "blocks", "builds"), rows)
