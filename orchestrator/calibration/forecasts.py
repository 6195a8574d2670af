"""Forecast which changes a planned run can detect on its hosts."""

from dataclasses import dataclass

from orchestrator.benchmarks.loads import primary_of
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.calibration.earlier_runs import earlier_noise
from orchestrator.calibration.sensitivity import (
    Sight,
    calibration_for,
    calibrations_of,
    sights_of,
)
from orchestrator.fleet.models import Host
from orchestrator.loadtools.metrics import Metric, metrics_of
from orchestrator.results.models import Calibration
from orchestrator.runs.models import HostRole
from orchestrator.runs.plans import RunPlan
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.power import blocks_needed, smallest_change


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A sentence about a host; `calibration` is its basis, None if there is none."""

    host: Host
    calibration: Calibration | None
    text: str


def forecasts_of(plan: RunPlan) -> list[Forecast]:
    """Return one forecast for each host that is named as a target."""
    targets = [roles[HostRole.TARGET] for roles in plan.placements]
    hosts = dict.fromkeys(wanted.host for wanted in targets if wanted.host is not None)
    benchmark = plan.definition.benchmark
    metric = metrics_of(primary_of(plan.spec)[:1])[0]
    return [_forecast(host, benchmark, metric, plan.rounds) for host in hosts]


def _forecast(host: Host, benchmark: Benchmark, metric: Metric, rounds: int) -> Forecast:
    calibration = calibration_for(host, benchmark)
    if calibration is None or calibration.benchmark != benchmark:
        earlier = earlier_noise(host, benchmark, metric.key)
        if earlier:
            seen = [
                Sight(case=case, label=case, metric=metric, noise=noise)
                for case, noise in earlier.items()
            ]
            text = f"{sentence(host.name, seen, rounds)} (by earlier runs there)"
            return Forecast(host=host, calibration=None, text=text)
    if calibration is None:
        return Forecast(host=host, calibration=None, text=_uncalibrated(host))
    sights = sights_of(calibration)
    first = [sight for sight in sights if sight.metric == sights[0].metric]
    text = sentence(host.name, first, rounds)
    if calibration.benchmark != benchmark:
        text += f" (by its noise with {calibration.benchmark.title}: not calibrated with this one)"
    return Forecast(host=host, calibration=calibration, text=text)


def sentence(name: str, sights: list[Sight], rounds: int) -> str:
    """Return a sentence about one metric of one or several cases.

    It says which changes `rounds` detect, and how many rounds the metric's margin needs in the
    noisiest case.
    """
    metric = sights[0].metric
    of = metric.title[0].lower() + metric.title[1:]
    margin = _percent(metric.margin)
    enough = _enough(sights, metric.margin)
    if rounds < FEWEST_BLOCKS and enough is not None:
        return f"To detect a change of {margin} in {of} on {name}, use {enough} rounds"
    reach = sorted(smallest_change(sight.noise.sigma, max(rounds, 2)) for sight in sights)
    seen = f"With {rounds} rounds, {name} detects changes of about {_span(reach)} in {of}"
    if enough is None:
        return f"{seen}; for {margin} not even {MAX_ROUNDS} rounds suffice"
    return seen if enough <= rounds else f"{seen}; for {margin} take {enough} rounds"


def _enough(sights: list[Sight], change: float) -> int | None:
    """Return the rounds that detect the change in the noisiest case; None if no run has so many."""
    needed = blocks_needed(max(sight.noise.sigma for sight in sights), change)
    if needed is None or needed > MAX_ROUNDS:
        return None
    return max(needed, FEWEST_BLOCKS)


def _span(changes: list[float]) -> str:
    least, most = _percent(changes[0]), _percent(changes[-1])
    if least == most:
        return most
    return f"{least.removesuffix(' %')} to {most}, depending on the case,"


def _percent(share: float) -> str:
    return f"{share * 100:.{0 if share >= 0.1 else 1}f} %".replace(".0 %", " %")


def _uncalibrated(host: Host) -> str:
    if calibrations_of(host).exclude(readings={}).exists():
        state = "has changed since it was calibrated"
    else:
        state = "is not calibrated yet"
    return f"{host.name} {state}: which changes it can detect is unknown"
