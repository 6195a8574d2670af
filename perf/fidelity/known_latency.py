"""Load tools on a server whose delays are known from its own log, through Pitwall.

Percentiles of a trial are compared with those that the server logged: the difference is the error
of the tool. Each load is a closed loop of 30 requests. The delays are in server/delays.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import yaml

from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState
from perf.fidelity.extent import KnownExtent
from perf.fidelity.loads import CALL, MESSAGE
from perf.fidelity.pitwall import Pitwall, PitwallError
from perf.fidelity.target import Target
from perf.harness.report import Requirement, render_table

DELAYS = ("constant", "uniform", "bimodal", "pauses")
PERCENTILES = ("p50", "p99", "p99.9")
LOADS: Mapping[str, Mapping[str, Any]] = {
    "oha": {"path": "/hello", "connections": 30},
    "wrk": {"path": "/hello", "connections": 30},
    "h2load": {"path": "/hello", "connections": 30},
    "k6": {"path": "/hello", "connections": 30},
    "ghz": {
        "protocol": "grpc",
        "connections": 6,
        "streams": 5,
        "grpc": {"call": CALL, "proto": "hello.proto", "data": MESSAGE},
    },
}
WARMUP_S = 1
TOLERANCE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileErrors:
    """measured / known − 1 of one percentile in each trial."""

    tool: str
    delays: str
    percentile: str
    known_s: float
    errors: tuple[float, ...]

    @property
    def key(self) -> str:
        return f"known_{self.tool}_{self.delays}_{self.percentile}_error"

    @property
    def error(self) -> float:
        return median(self.errors)


def measure_errors(
    pitwall: Pitwall, target: Target, tools: Sequence[str], extent: KnownExtent
) -> list[PercentileErrors]:
    """Measure each tool with each distribution, all distributions of a tool in one run."""
    errors = []
    for tool in tools:
        source = yaml.safe_dump(_build_definition(tool, target, extent.duration_s))
        load_s = len(DELAYS) * extent.rounds * (extent.duration_s + WARMUP_S)
        trials = pitwall.measure_cases(f"known-{tool}", source, rounds=extent.rounds, load_s=load_s)
        for delays in DELAYS:
            mine = [each for each in trials if each.case.parameters["delays"] == delays]
            errors += _compute_errors(pitwall, tool, delays, mine)
        print(f"  {tool}: {', '.join(each.validity for each in trials)}", flush=True)
    return errors


def _build_definition(tool: str, target: Target, duration_s: int) -> dict[str, Any]:
    argv = [*target.argv("{port}", work=0), "-delays", "{delays}"]
    return {
        "version": 1,
        "title": f"Known latency, {tool}",
        "subject": {"start": argv, "ready": {"path": "/ready"}},
        "load": {
            "tool": tool,
            **LOADS[tool],
            "warmup_s": WARMUP_S,
            "duration_s": duration_s,
        },
        "limits": {"target": {"cpus": 1}, "generator": {"cpus": 1}},
        "matrix": {"delays": list(DELAYS)},
        "rounds": 1,
        "cooldown_s": 0,
    }


def _compute_errors(
    pitwall: Pitwall, tool: str, delays: str, trials: Sequence[Trial]
) -> list[PercentileErrors]:
    values = load_values([trial.pk for trial in trials])
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in PERCENTILES}
    for trial in trials:
        if trial.state != TrialState.MEASURED:
            raise PitwallError(f"{tool}, {delays}: {trial.message or trial.job.run.message}")
        logged = json.loads(pitwall.read_file(trial, "server.log").splitlines()[-1])
        for name in PERCENTILES:
            measured = values[trial.pk].get(f"latency.{name}")
            if measured is None:
                raise PitwallError(f"{tool}, {delays}: a trial has no {name}: {trial.reasons}")
            pairs[name].append((measured, logged[name]))
    return [
        PercentileErrors(
            tool=tool,
            delays=delays,
            percentile=name,
            known_s=median(known for _, known in pairs[name]),
            errors=tuple(measured / known - 1 for measured, known in pairs[name]),
        )
        for name in PERCENTILES
    ]


def get_measured(errors: Sequence[PercentileErrors]) -> dict[str, float]:
    """Return the median error of each percentile by key, and its distance from 0."""
    values = {each.key: each.error for each in errors}
    return {**values, **{f"{key}_deviation": abs(error) for key, error in values.items()}}


def build_requirements(errors: Sequence[PercentileErrors]) -> dict[str, Requirement | None]:
    """Return limits for the keys of `get_measured`; None is only reported."""
    limit = Requirement(relation="<=", limit=TOLERANCE)
    return {key: limit if key.endswith("_deviation") else None for key in get_measured(errors)}


def format_table(errors: Sequence[PercentileErrors]) -> str:
    rows = [
        (
            f"{each.tool}, {each.delays}, {each.percentile}",
            f"{1000 * each.known_s:.2f} ms",
            f"{100 * each.error:+.2f} %",
            f"{100 * min(each.errors):+.2f} to {100 * max(each.errors):+.2f} %",
        )
        for each in errors
    ]
    return render_table(("Known latency", "server's log", "error", "of the trials"), rows)


def list_details(errors: Sequence[PercentileErrors]) -> dict[str, Any]:
    """Return the errors of every trial, for the file of results."""
    return {each.key: {"known_s": each.known_s, "errors": list(each.errors)} for each in errors}
