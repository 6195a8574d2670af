"""Forecast which changes a planned run can detect on its hosts."""

from dataclasses import dataclass

from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.calibration.earlier_runs import load_earlier_noise
from orchestrator.calibration.models import Calibration
from orchestrator.calibration.resolution import group_by_first_metric
from orchestrator.calibration.sensitivity import (
    Sensitivity,
    list_sensitivities,
    load_calibrations,
    load_newest_calibration,
)
from orchestrator.fleet.models import Host
from orchestrator.loadtools.metrics import Metric
from orchestrator.runs.models import HostRole
from orchestrator.runs.plans import RunPlan
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.power import compute_needed_blocks, compute_smallest_change


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A sentence about a host; `calibration` is its basis, None if there is none."""

    host: Host
    calibration: Calibration | None
    text: str


def forecast_resolution(plan: RunPlan) -> list[Forecast]:
    """Return a forecast for each host that is named as a target and each first primary metric."""
    targets = [roles[HostRole.TARGET] for roles in plan.placements]
    hosts = dict.fromkeys(wanted.host for wanted in targets if wanted.host is not None)
    benchmark = plan.definition.benchmark
    metrics = group_by_first_metric(plan)
    return [
        _forecast_host(host, benchmark, metric, plan.rounds) for host in hosts for metric in metrics
    ]


def _forecast_host(host: Host, benchmark: Benchmark, metric: Metric, rounds: int) -> Forecast:
    calibration = load_newest_calibration(host, benchmark)
    if calibration is None or calibration.benchmark != benchmark:
        earlier = load_earlier_noise(host, benchmark, metric.key)
        if earlier:
            seen = [
                Sensitivity(case=case, label=case, metric=metric, noise=noise)
                for case, noise in earlier.items()
            ]
            text = f"{format_forecast(host.name, seen, rounds)} (by earlier runs there)"
            return Forecast(host=host, calibration=None, text=text)
    if calibration is None:
        return Forecast(host=host, calibration=None, text=_explain_uncalibrated(host))
    sights = list_sensitivities(calibration)
    measured = {sight.metric for sight in sights}
    shown = metric if metric in measured else sights[0].metric
    first = [sight for sight in sights if sight.metric == shown]
    text = format_forecast(host.name, first, rounds)
    if calibration.benchmark != benchmark:
        text += f" (by its noise with {calibration.benchmark.title}: not calibrated with this one)"
    return Forecast(host=host, calibration=calibration, text=text)


def format_forecast(name: str, sights: list[Sensitivity], rounds: int) -> str:
    """Return a sentence about one metric of one or several cases.

    It says which changes `rounds` detect, and how many rounds the metric's margin needs in the
    noisiest case.
    """
    metric = sights[0].metric
    of = metric.title[0].lower() + metric.title[1:]
    margin = _format_percent(metric.margin)
    enough = _count_enough_rounds(sights, metric.margin)
    if rounds < FEWEST_BLOCKS and enough is not None:
        return f"To detect a change of {margin} in {of} on {name}, use {enough} rounds"
    reach = sorted(compute_smallest_change(sight.noise.sigma, max(rounds, 2)) for sight in sights)
    seen = f"With {rounds} rounds, {name} detects changes of about {_format_span(reach)} in {of}"
    if enough is None:
        return f"{seen}; for {margin} not even {MAX_ROUNDS} rounds suffice"
    return seen if enough <= rounds else f"{seen}; for {margin} take {enough} rounds"


def _count_enough_rounds(sights: list[Sensitivity], change: float) -> int | None:
    """Return the rounds that detect the change in the noisiest case; None if no run has so many."""
    needed = compute_needed_blocks(max(sight.noise.sigma for sight in sights), change)
    if needed is None or needed > MAX_ROUNDS:
        return None
    return max(needed, FEWEST_BLOCKS)


def _format_span(changes: list[float]) -> str:
    least, most = _format_percent(changes[0]), _format_percent(changes[-1])
    if least == most:
        return most
    return f"{least.removesuffix(' %')} to {most}, depending on the case,"


def _format_percent(share: float) -> str:
    return f"{share * 100:.{0 if share >= 0.1 else 1}f} %".replace(".0 %", " %")


def _explain_uncalibrated(host: Host) -> str:
    if load_calibrations(host).exclude(readings={}).exists():
        state = "has changed since it was calibrated"
    else:
        state = "is not calibrated yet"
    return f"{host.name} {state}: which changes it can detect is unknown"
