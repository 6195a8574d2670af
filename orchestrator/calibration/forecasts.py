"""Forecast which changes a planned run can detect on its hosts."""

from dataclasses import dataclass, replace

from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.calibration.earlier_runs import load_earlier_noise
from orchestrator.calibration.resolution import count_primary_metrics, group_by_first_metric
from orchestrator.calibration.sensitivity import (
    Sensitivity,
    list_sensitivities,
    load_calibrations,
    load_newest_calibration,
)
from orchestrator.fleet.models import Host
from orchestrator.loadtools.metrics import Metric
from orchestrator.results.models import Calibration
from orchestrator.runs.models import HostRole
from orchestrator.runs.plans import RunPlan
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.power import compute_smallest_change


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
    metrics, family = group_by_first_metric(plan), count_primary_metrics(plan)
    return [
        _forecast_host(host, benchmark, metric, plan.rounds, family)
        for host in hosts
        for metric in metrics
    ]


def _forecast_host(
    host: Host, benchmark: Benchmark, metric: Metric, rounds: int, family: int
) -> Forecast:
    calibration = load_newest_calibration(host, benchmark)
    if calibration is None or calibration.benchmark != benchmark:
        earlier = load_earlier_noise(host, benchmark, metric.key)
        if earlier:
            seen = [
                Sensitivity(case=case, label=case, metric=metric, noise=noise, family=family)
                for case, noise in earlier.items()
            ]
            text = f"{format_forecast(host.name, seen, rounds)} (by earlier runs there)"
            return Forecast(host=host, calibration=None, text=text)
    if calibration is None:
        return Forecast(host=host, calibration=None, text=_explain_uncalibrated(host))
    sights = list_sensitivities(calibration)
    measured = {sight.metric for sight in sights}
    shown = metric if metric in measured else sights[0].metric
    first = [replace(sight, family=family) for sight in sights if sight.metric == shown]
    text = format_forecast(host.name, first, rounds)
    if calibration.benchmark != benchmark:
        text += f" (by its noise with {calibration.benchmark.title}: not calibrated with this one)"
    return Forecast(host=host, calibration=calibration, text=text)


def format_forecast(name: str, sights: list[Sensitivity], rounds: int) -> str:
    """Return a sentence about one metric of one or several cases.

    It says which changes `rounds` detect, and how many rounds twice the margin needs in the
    noisiest case.
    """
    noisiest = max(sights, key=lambda sight: sight.noise.upper)
    of = noisiest.metric.title[0].lower() + noisiest.metric.title[1:]
    wanted, enough = _format_percent(noisiest.target_change), noisiest.needed
    blocks = min(sight.noise.count_usable(rounds) for sight in sights)
    if blocks < FEWEST_BLOCKS:
        few = f"With {rounds} rounds, {name} decides nothing in {of}"
        return f"{few}; {_suggest_rounds(wanted, enough)}"
    reach = sorted(compute_smallest_change(each.noise.upper, blocks, each.rule) for each in sights)
    seen = f"With {rounds} rounds, {name} detects changes of about {_format_span(reach)} in {of}"
    if enough is not None and enough <= rounds:
        return seen
    return f"{seen}; {_suggest_rounds(wanted, enough)}"


def _suggest_rounds(wanted: str, enough: int | None) -> str:
    if enough is None:
        return f"for {wanted} not even {MAX_ROUNDS} rounds suffice"
    return f"for {wanted} take {enough} rounds"


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
