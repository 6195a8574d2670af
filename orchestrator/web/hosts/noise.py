"""The noise floor of a host for its page: the changes that it can detect now, and its history."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.urls import reverse

from cli.pitwall.units import format_value
from orchestrator.calibration.sensitivity import (
    BLOCKS,
    Sensitivity,
    list_sensitivities,
    load_calibrations,
    present_calibrations,
    read_noise,
)
from orchestrator.fleet.models import Host
from orchestrator.fleet.selectors import load_host_changes
from orchestrator.measurements.validity_issues import RunValidity, load_run_validity
from orchestrator.results.models import Calibration
from orchestrator.runs.calibration import load_open_calibrations
from orchestrator.runs.models import Run
from orchestrator.stats.noise import Noise
from orchestrator.web.hosts.facts import format_fact_title

#: The most calibrations in the history.
MAX_HISTORY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One metric of one case of a benchmark: the subject of a history."""

    calibration: Calibration
    sight: Sensitivity

    @property
    def value(self) -> str:
        """The value of the parameter in an address."""
        return f"{self.calibration.benchmark_id}-{self.sight.case}-{self.sight.metric.key}"

    @property
    def title(self) -> str:
        benchmark, label = self.calibration.benchmark.title, self.sight.label
        return f"{benchmark}: {self.sight.metric.title}{f', {label}' if label else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """A calibration and its noise of the chosen series; None if it has none."""

    calibration: Calibration
    noise: Noise | None
    present: bool
    validity: RunValidity

    @property
    def interval(self) -> tuple[float, float] | None:
        return (self.noise.low, self.noise.high) if self.noise else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """Newest first. `now`: the noise in each benchmark's latest calibration of the present epoch.

    It also counts the suspect and invalid trials of these.
    """

    now: list[tuple[Calibration, list[Sensitivity], RunValidity]]
    series: list[Series]
    chosen: Series | None
    rows: list[HistoryRow]
    chart: dict[str, Any] | None
    running: list[Run]
    blocks: tuple[int, ...] = BLOCKS


def load_noise_floor(host: Host, wanted: str = "") -> NoiseFloor:
    """Return the noise of a host for its page. `wanted` is the `value` of a series."""
    known = list(load_calibrations(host)[:MAX_HISTORY])
    series = _list_series(known)
    chosen = next((each for each in series if each.value == wanted), next(iter(series), None))
    changes = list(load_host_changes(host))
    present = present_calibrations(host)
    validity = load_run_validity({each.run_id for each in (*known, *present)})
    rows = [
        HistoryRow(
            calibration=each,
            noise=read_noise(each, chosen.sight.case, chosen.sight.metric.key) if chosen else None,
            present=each.epoch == len(changes),
            validity=validity[each.run_id],
        )
        for each in known
        if chosen is None or each.benchmark_id == chosen.calibration.benchmark_id
    ]
    epochs = [", ".join(map(format_fact_title, change.changed)) for change in changes]
    return NoiseFloor(
        now=[(each, list_sensitivities(each), validity[each.run_id]) for each in present],
        series=series,
        chosen=chosen,
        rows=rows,
        chart=build_noise_chart(chosen, rows, epochs) if chosen else None,
        running=list(load_open_calibrations(host).select_related("definition__benchmark")),
    )


def build_noise_chart(
    chosen: Series, rows: Sequence[HistoryRow], epochs: Sequence[str]
) -> dict[str, Any]:
    """Return the data for `static/js/noise.js`, oldest point first; noise in per cent.

    `epochs[n]` describes the change of the host that ended epoch n.
    """
    points = [(row.calibration, row.noise) for row in reversed(rows) if row.noise is not None]
    marks = [
        {"before": place, "label": "; ".join(epochs[before.epoch : after.epoch])}
        for place, ((before, _), (after, _)) in enumerate(pairwise(points), start=1)
        if before.epoch != after.epoch
    ]
    return {
        "title": f"Noise of {chosen.title}",
        "unit": "%",
        "points": [_build_point(calibration, noise) for calibration, noise in points],
        "changes": marks,
    }


def _build_point(calibration: Calibration, noise: Noise) -> dict[str, Any]:
    return {
        "label": f"{calibration.at:%Y-%m-%d %H:%M}",
        "subject": f"UTC, {calibration.commit.short_sha}",
        "value": noise.sigma * 100,
        "low": noise.low * 100,
        "high": noise.high * 100,
        "shown": format_value(noise.sigma, "ratio"),
        "url": reverse("run", args=[calibration.run_id]),
    }


def _list_series(known: Sequence[Calibration]) -> list[Series]:
    """Return the series in each benchmark's latest calibration that has a result."""
    newest: dict[int, Calibration] = {}
    for each in known:
        if each.readings:
            newest.setdefault(each.benchmark_id, each)
    return [
        Series(calibration=each, sight=sight)
        for each in newest.values()
        for sight in list_sensitivities(each)
    ]
