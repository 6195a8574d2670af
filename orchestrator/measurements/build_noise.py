"""The noise between builds that calibrations measured on the hosts of some cases."""

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from orchestrator.results.models import HostBuildNoise
from orchestrator.stats.build_noise import BuildNoise


class BuildNoiseKey(NamedTuple):
    """A metric of a case on a host in an epoch; `host` is the id as text."""

    host: str
    case: int
    metric: str
    epoch: int


def load_build_noise(
    cases: Collection[int], hosts: Collection[UUID]
) -> dict[BuildNoiseKey, BuildNoise]:
    """Return the newest noise between builds of each metric of these cases on these hosts."""
    rows = HostBuildNoise.objects.filter(series__case__in=cases, series__host__in=hosts)
    return {
        BuildNoiseKey(
            str(row.series.host_id), row.series.case_id, row.series.metric.key, row.epoch
        ): read_build_noise(row)
        for row in rows.select_related("series__metric").order_by("pk")
    }


def read_build_noise(row: HostBuildNoise) -> BuildNoise:
    return BuildNoise(
        builds=row.builds, sigma=row.sigma, low=row.low, high=row.high, degrees=row.degrees
    )
