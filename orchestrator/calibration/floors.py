"""The noise floor of each host of a team, with its history."""

from dataclasses import dataclass
from datetime import datetime
from statistics import median
from uuid import UUID

from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber

from orchestrator.accounts.members import Member
from orchestrator.fleet.models import HostChange
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.results.models import Calibration

#: The most calibrations in a history.
MOST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The noise of the first primary metric in the newest calibration with a result.

    Over several cases it is their median. `history` contains the same value of earlier calibrations
    with the same benchmark, oldest first. `present`: the host did not change later.
    """

    benchmark: str
    metric: Metric
    cases: int
    at: datetime
    present: bool
    history: tuple[float, ...]

    @property
    def sigma(self) -> float:
        return self.history[-1]


def load_noise_floors(member: Member) -> dict[UUID, Floor]:
    """Return floors by host; hosts without a calibration that has a result are left out."""
    epochs = dict(
        HostChange.objects.filter(host__team=member.team)
        .values_list("host_id")
        .annotate(changes=Count("pk"))
    )
    of_host: dict[UUID, list[Calibration]] = {}
    for each in _load_newest(member):
        of_host.setdefault(each.host_id, []).append(each)
    floors = {
        host_id: _build_floor(known, epochs.get(host_id, 0)) for host_id, known in of_host.items()
    }
    return {host_id: floor for host_id, floor in floors.items() if floor is not None}


def _load_newest(member: Member) -> list[Calibration]:
    place = Window(RowNumber(), partition_by=F("host_id"), order_by=F("at").desc())
    return list(
        Calibration.objects.filter(host__team=member.team)
        .exclude(readings={})
        .annotate(place=place)
        .filter(place__lte=MOST)
        .select_related("benchmark")
        .order_by("host_id", "-at")
    )


def _build_floor(known: list[Calibration], epoch: int) -> Floor | None:
    """Return the floor of a host; None if its metrics are unknown. `known`: newest first."""
    newest = known[0]
    metrics = find_metrics({key for case in newest.readings.values() for key in case})
    if not metrics:
        return None
    metric = metrics[0]
    like = [each for each in known if each.benchmark_id == newest.benchmark_id]
    sigmas = [sigma for each in like if (sigma := _compute_sigma(each, metric.key)) is not None]
    return Floor(
        benchmark=newest.benchmark.title,
        metric=metric,
        cases=len(newest.readings),
        at=newest.at,
        present=newest.epoch == epoch,
        history=tuple(reversed(sigmas)),
    )


def _compute_sigma(calibration: Calibration, metric: str) -> float | None:
    sigmas = [case[metric]["sigma"] for case in calibration.readings.values() if metric in case]
    return median(sigmas) if sigmas else None
