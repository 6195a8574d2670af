"""CPU use of server and load tool during the newest trials of a job, second by second.

The data are samples in the results of trials. The host is not queried while a load runs, so a
running trial has no trace yet.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any
from uuid import UUID

from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState

#: The number of trials shown for a job, the newest last.
NEWEST = 6
#: Larger results are not read just to draw a small chart.
MOST_BYTES = 2_000_000

#: (seconds since the start of the load, CPU cores used since the previous point), in time order.
Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTrace:
    """The CPU cores that the server and the load tool of one trial used; empty without samples."""

    seconds: float
    server: Line
    tool: Line


def load_cpu_traces(jobs: Iterable[UUID]) -> dict[UUID, list[CpuTrace]]:
    """Return the newest measured trials of each job in time order, with one query per job."""
    return {job: _load_job_traces(job) for job in jobs}


def _load_job_traces(job: UUID) -> list[CpuTrace]:
    measured = Trial.objects.filter(job=job, state=TrialState.MEASURED)
    newest = measured.order_by("-ended_at", "-position")
    traces = [_load_trial_trace(pk) for pk in newest.values_list("pk", flat=True)[:NEWEST]]
    return [trace for trace in reversed(traces) if trace is not None]


@lru_cache(maxsize=512)
def _load_trial_trace(trial: UUID) -> CpuTrace | None:
    """Return the trace of a trial, from the cache if possible: a measured trial never changes."""
    files = Artifact.objects.filter(trial=trial, name="result.json", size__lt=MOST_BYTES)
    packed = files.values_list("compressed", flat=True).first()
    if packed is None:
        return None
    return extract_trace(json.loads(zlib.decompress(packed)))


def extract_trace(result: Mapping[str, Any]) -> CpuTrace | None:
    """Build the trace of a result.json, its loads one after the other; None without a duration."""
    seconds = 0.0
    server: list[tuple[float, float]] = []
    tool: list[tuple[float, float]] = []
    for load in result.get("loads") or []:
        took_s = float(load["load_ended_at"]) - float(load["load_started_at"])
        if took_s <= 0:
            continue
        server += _build_line(load, "server_cpu_s", took_s, seconds)
        tool += _build_line(load, "tool_cpu_s", took_s, seconds)
        seconds += took_s
    if not seconds:
        return None
    return CpuTrace(seconds=seconds, server=tuple(server), tool=tuple(tool))


def _build_line(load: Mapping[str, Any], key: str, took_s: float, after_s: float) -> Line:
    """Derive CPU use from the growth between samples; the last point lasts until the load ends."""
    samples = [(float(each["t"]), each.get(key)) for each in load.get("samples") or []]
    samples.append((took_s, (load.get("usage") or {}).get(key)))
    known = [(t, float(cpu_s)) for t, cpu_s in samples if cpu_s is not None and t <= took_s]
    return tuple(
        (after_s + later, max(0.0, now - was) / (later - earlier))
        for (earlier, was), (later, now) in pairwise([(0.0, 0.0), *known])
        if later - earlier > 0.05
    )
