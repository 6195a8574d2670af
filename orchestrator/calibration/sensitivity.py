"""The change that a host can detect, by its calibrations."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from orchestrator.benchmarks.models import Benchmark
from orchestrator.calibration.build_noise import load_calibrated_build_noise
from orchestrator.fleet.models import Host
from orchestrator.fleet.selectors import load_host_changes
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.results.models import Calibration
from orchestrator.stats.build_noise import BuildNoise
from orchestrator.stats.noise import Noise
from orchestrator.stats.power import (
    MOST_BLOCKS,
    ClaimRule,
    build_claim_rule,
    compute_needed_blocks,
    compute_smallest_change,
)

#: The smallest detectable change is shown for these numbers of blocks.
BLOCKS = (5, 7, 10, 20)
#: The number of rounds is shown for a change of so many margins.
MARGINS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The noise of one metric of a case, and the changes that are reported four times in five.

    The noise is assumed at its upper limit. `family`: the number of primary metrics of a run, of
    which this one is the only one that changed. `build_noise`: None if the commit was built once.
    `smallest`: the smallest change for each number of BLOCKS. `needed`: rounds for a change of
    `target_change`, None if no run has enough.
    """

    case: str
    label: str
    metric: Metric
    noise: Noise
    family: int
    build_noise: BuildNoise | None = None

    @property
    def rule(self) -> ClaimRule:
        return build_claim_rule(self.metric.margin, family=self.family)

    @property
    def smallest(self) -> list[tuple[int, float]]:
        return [
            (blocks, compute_smallest_change(self.noise.upper, blocks, self.rule))
            for blocks in BLOCKS
        ]

    @property
    def target_change(self) -> float:
        return MARGINS * self.metric.margin

    @property
    def needed(self) -> int | None:
        return count_needed_rounds(self.noise, self.target_change, self.rule)

    @property
    def interval(self) -> tuple[float, float]:
        return self.noise.low, self.noise.high

    @property
    def build_interval(self) -> tuple[float, float] | None:
        return (self.build_noise.low, self.build_noise.high) if self.build_noise else None

    @property
    def drift(self) -> float:
        """The second of a pair relative to the first, as a change."""
        return math.expm1(self.noise.mean)

    @property
    def drift_interval(self) -> tuple[float, float]:
        return math.expm1(self.noise.mean_low), math.expm1(self.noise.mean_high)


def count_needed_rounds(noise: Noise, change: float, rule: ClaimRule) -> int | None:
    """Return the rounds whose usable blocks report this change four times in five.

    The noise is assumed at its upper limit. None if no run has enough rounds.
    """
    blocks = compute_needed_blocks(noise.upper, change, rule)
    rounds = None if blocks is None else noise.count_rounds(blocks)
    return None if rounds is None or rounds > MOST_BLOCKS else rounds


def load_calibrations(host: Host) -> QuerySet[Calibration]:
    """Return all calibrations of a host, newest first. Get the host through `load_host`."""
    return (
        Calibration.objects.filter(host=host)
        .select_related("benchmark__project", "commit", "run")
        .order_by("-at")
    )


def present_epoch(host: Host) -> int:
    """Return how often the host has changed: calibrations of earlier epochs do not count."""
    return load_host_changes(host).count()


def present_calibrations(host: Host) -> list[Calibration]:
    """Return each benchmark's newest calibration with a result in the present epoch."""
    present = load_calibrations(host).filter(epoch=present_epoch(host)).exclude(readings={})
    newest: dict[int, Calibration] = {}
    for each in present:
        newest.setdefault(each.benchmark_id, each)
    return list(newest.values())


def load_newest_calibration(host: Host, benchmark: Benchmark) -> Calibration | None:
    """Return the newest calibration with that benchmark, or else with any other."""
    newest = present_calibrations(host)
    return next((each for each in newest if each.benchmark == benchmark), next(iter(newest), None))


def list_sensitivities(calibration: Calibration) -> list[Sensitivity]:
    """Return the results of a calibration by case, primary metrics in order.

    The family is that of a run of the same cases on the host.
    """
    labels = dict(calibration.benchmark.cases.values_list("key", "label"))
    builds = load_calibrated_build_noise(calibration)
    sensitivities = list(_iterate_sensitivities(calibration.readings, labels, builds))
    return sorted(sensitivities, key=lambda sight: sight.label)


def read_noise(calibration: Calibration, case: str, metric: str) -> Noise | None:
    """Return the noise of one metric of a case in a calibration."""
    reading = calibration.readings.get(case, {}).get(metric)
    return Noise(**reading) if reading else None


def _iterate_sensitivities(
    readings: Mapping[str, Any],
    labels: Mapping[str, str],
    builds: Mapping[tuple[str, str], BuildNoise],
) -> Iterator[Sensitivity]:
    family = sum(map(len, readings.values()))
    for case, metrics in readings.items():
        # JSON does not keep the order of keys. Metrics that are no longer in the registry are left
        # out.
        for info in find_metrics(metrics):
            yield Sensitivity(
                case=case,
                label=labels.get(case, case),
                metric=info,
                noise=Noise(**metrics[info.key]),
                family=family,
                build_noise=builds.get((case, info.key)),
            )
