"""The tables of change points and of single comparisons, for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perf.detection.build_noise import Bisections, BuildClaims
from perf.detection.capacity import CapacityErrors
from perf.detection.comparisons import Comparisons
from perf.detection.error_rates import RERUNS, ErrorRates
from perf.detection.evaluation import CONFIRMING
from perf.detection.false_claims import OrderClaims, RunClaims
from perf.detection.needed_blocks import FACTOR, NeededBlockErrors
from perf.detection.power import Power
from perf.detection.saturation import SaturationErrors
from perf.detection.summary import IN_TIME, Measurements
from perf.harness.report import render_table


def format_text(data: Measurements) -> str:
    """Return the tables for people."""
    parts = [
        _format_scores(data),
        _format_alarms(data),
        _format_comparisons(data.comparisons),
        _format_needed(data.needed),
        _format_order_claims(data.claims.orders),
        _format_run_claims(data.claims.runs),
        _format_errors(data.errors),
        _format_power(data.power),
        _format_build_claims("False claims by the build", data.builds.claims),
        _format_build_claims("With the noise of a calibration", data.builds.calibrated),
        _format_bisections(data.builds.bisections),
        _format_saturation(data.saturation),
        _format_capacity(data.capacity),
    ]
    return "\n\n".join(parts)


def _format_scores(data: Measurements) -> str:
    rows = [
        (
            title,
            *(
                f"{share:.3f}"
                for score in (each.made, each.real)
                for share in score.shares.values()
            ),
        )
        for title, each in data.results.items()
    ]
    head = ("Changes found", "made: precision", "recall", "F1", "real: precision", "recall", "F1")
    return render_table(head, rows)


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


def _format_run_claims(many: Sequence[RunClaims]) -> str:
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


def _format_build_claims(title: str, many: Sequence[BuildClaims]) -> str:
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
