"""The settings of the machine that creates the load of a job, if it is not the server's.

They are part of the configuration: latencies contain the time of the load tool. The epoch of a
point is that of the server's host, and one host may get its load from several others.
"""

from collections.abc import Mapping

from orchestrator.fleet.selectors import find_latest_snapshot
from orchestrator.fleet.tuning import KNOBS
from orchestrator.runs.models import HostRole, Job

_MOST_CHARACTERS = 60


def load_generator_settings(job: Job) -> dict[str, str]:
    """Return the settings of the load's host that tuning could change, by name.

    They are those of its latest facts, with its tuning. Empty if the server's host creates the
    load, or nothing is known.
    """
    placed = job.placements.filter(role=HostRole.GENERATOR, host__isnull=False)
    host = next((each.host for each in placed.exclude(host=job.host).select_related("host")), None)
    snapshot = find_latest_snapshot(host) if host else None
    static = snapshot.facts.get("static") if snapshot else None
    if not isinstance(static, Mapping):
        return {}
    known = {name: static.get(name) for name in sorted(KNOBS)}
    return {
        name: str(value)[:_MOST_CHARACTERS] for name, value in known.items() if value is not None
    }


def describe_settings(settings: Mapping[str, str]) -> str:
    """Return the settings as text, such as `governor performance, turbo off`."""
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))
