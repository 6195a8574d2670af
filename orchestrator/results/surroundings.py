"""What the host was like while a trial was measured, read from the files that it left."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial

_TITLES = {"server": "server", "tool": "load tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedLimits:
    """What one process of a trial was held to; None where it was not limited or is not known.

    `refused`: (limit, why it did not hold).
    """

    process: str
    mechanism: str
    cpus: tuple[int, ...] | None
    cpu_quota: float | None
    memory_bytes: int | None
    open_files: int | None
    throttled: int | None
    oom_kills: int | None
    refused: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Lowest and highest value of the samples; None where the host does not tell."""

    temperature_c: tuple[float, float] | None
    clock_mhz: tuple[float, float] | None


def surroundings_of(trial: Trial) -> Surroundings:
    samples = _result(trial).get("samples") or []
    return Surroundings(
        temperature_c=_span(samples, "temperature_c"), clock_mhz=_span(samples, "clock_mhz")
    )


def applied_limits(trial: Trial) -> list[AppliedLimits]:
    """Of the server, the load tool and the services, as they were read back on the host."""
    limits = trial.provenance.get("limits") or {}
    order = sorted(limits, key=lambda process: (process not in _TITLES, process))
    return [_applied(process, limits[process]) for process in order if limits[process]]


def _applied(process: str, applied: Mapping[str, Any]) -> AppliedLimits:
    cpus = applied.get("cpus")
    return AppliedLimits(
        process=_title(process),
        mechanism=str(applied.get("mechanism") or ""),
        cpus=None if cpus is None else tuple(cpus),
        cpu_quota=applied.get("cpu_quota"),
        memory_bytes=applied.get("memory_bytes"),
        open_files=applied.get("open_files"),
        throttled=applied.get("throttled"),
        oom_kills=applied.get("oom_kills"),
        refused=tuple((applied.get("refused") or {}).items()),
    )


def _title(process: str) -> str:
    """`service:redis:1` as `redis 1`."""
    return _TITLES.get(process) or process.removeprefix("service:").replace(":", " ")


def _result(trial: Trial) -> Mapping[str, Any]:
    artifact = Artifact.objects.filter(trial=trial, name="result.json").first()
    try:
        found = json.loads(zlib.decompress(artifact.compressed)) if artifact else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _span(samples: Sequence[Mapping[str, Any]], key: str) -> tuple[float, float] | None:
    values = [each[key] for each in samples if isinstance(each.get(key), int | float)]
    return (min(values), max(values)) if values else None
