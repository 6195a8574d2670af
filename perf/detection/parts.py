"""The parts of the benchmark: each has its targets, and can be measured alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perf.detection import contests, run_summary, summary, summary_tables, watching
from perf.detection.build_noise import measure_build_errors
from perf.detection.capacity import measure_capacity_errors
from perf.detection.comparisons import measure_grid
from perf.detection.detectors import list_detectors, read_otava_version
from perf.detection.error_rates import measure_error_rates
from perf.detection.evaluation import Evaluation, Extent
from perf.detection.false_claims import measure_false_claims
from perf.detection.needed_blocks import measure_needed_blocks
from perf.detection.power import measure_power
from perf.detection.saturation import measure_saturation
from perf.harness.report import Requirement


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """`measured` has the keys of the part's targets; `text` has tables for people."""

    measured: Mapping[str, float]
    details: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`measure` gets the extent and the seed."""

    wanted: Mapping[str, Requirement | None]
    measure: Callable[[Extent, int], PartResult]


def _measure_changes(extent: Extent, seed: int) -> PartResult:
    evaluation = Evaluation(extent, seed)
    results = {}
    for detector in list_detectors():
        print(f"  {detector.title}", flush=True)
        every, sure = evaluation.results(detector)
        results[detector.title] = every
        if detector.title == summary.PITWALL:
            results[summary.ALERTS] = sure
    print("  comparisons", flush=True)
    single = measure_grid(extent.comparisons, seed)
    print("  needed blocks", flush=True)
    needed = measure_needed_blocks(extent.inconclusive, seed)
    print("  false claims by order and run", flush=True)
    claims = measure_false_claims(extent.comparisons, seed)
    print("  error rates", flush=True)
    errors = measure_error_rates(extent.repeated, seed)
    print("  power", flush=True)
    power = measure_power(extent.powers, seed)
    print("  builds", flush=True)
    builds = measure_build_errors(extent.builds, seed)
    print("  saturation and capacity", flush=True)
    saturation = measure_saturation(extent.comparisons, seed)
    capacity = measure_capacity_errors(extent.capacity_searches, seed)
    data = summary.Measurements(
        results, single, needed, claims, errors, power, builds, saturation, capacity
    )
    return PartResult(
        measured=summary.get_measured(data),
        details={"apache-otava": read_otava_version(), **summary.list_details(data)},
        text=summary_tables.format_text(data),
    )


def _measure_watching(extent: Extent, seed: int) -> PartResult:
    data = watching.measure_watching(extent, seed)
    return PartResult(
        measured=watching.get_measured(data),
        details=watching.list_details(data),
        text=watching.format_text(data),
    )


def _measure_contests(extent: Extent, seed: int) -> PartResult:
    data = contests.measure_contests(extent, seed)
    return PartResult(
        measured=contests.get_measured(data),
        details=contests.list_details(data),
        text=contests.format_text(data),
    )


def _measure_runs(extent: Extent, seed: int) -> PartResult:
    data = run_summary.measure_runs(extent.runs, seed)
    return PartResult(
        measured=run_summary.get_measured(data),
        details=run_summary.list_details(data),
        text=run_summary.format_text(data),
    )


PARTS: Mapping[str, Part] = {
    "changes": Part(wanted=summary.WANTED, measure=_measure_changes),
    "watching": Part(wanted=watching.WANTED, measure=_measure_watching),
    "contests": Part(wanted=contests.WANTED, measure=_measure_contests),
    "runs": Part(wanted=run_summary.WANTED, measure=_measure_runs),
}
