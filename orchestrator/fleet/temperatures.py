"""The latest temperatures of a team's hosts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.fleet.models import HostSnapshot

#: Prefixes of the names that drivers give to sensors of a CPU; others are of disks, boards and
#: radios.
_CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu", "x86_pkg_temp", "soc")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTemperature:
    """The hottest sensor of the CPU, or of the machine if no CPU sensor is known."""

    sensor: str
    celsius: float
    at: datetime


def load_temperatures(member: Member) -> dict[UUID, HostTemperature]:
    """Return temperatures by host, from its latest snapshot; hosts without sensors are left out."""
    newest = (
        HostSnapshot.objects.filter(host__team=member.team)
        .order_by("host_id", "-taken_at")
        .distinct("host_id")
        .values_list("host_id", "taken_at", "facts__temperatures")
    )
    hottest = ((host_id, at, find_hottest(readings)) for host_id, at, readings in newest)
    return {
        host_id: HostTemperature(sensor=sensor[0], celsius=sensor[1], at=at)
        for host_id, at, sensor in hottest
        if sensor is not None
    }


def find_hottest(readings: Any) -> tuple[str, float] | None:
    """Return the name and °C of the hottest sensor of a host's facts.

    `readings`: °C by sensor.
    """
    if not isinstance(readings, Mapping):
        return None
    known = {str(name): value for name, value in readings.items() if isinstance(value, int | float)}
    of_cpu = {name: value for name, value in known.items() if name.startswith(_CPU_SENSORS)}
    chosen = of_cpu or known
    return max(chosen.items(), key=lambda sensor: sensor[1]) if chosen else None
