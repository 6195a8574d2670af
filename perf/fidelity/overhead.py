"""The time that a trial takes in addition to its load: start, checks, results and next start.

One run of 14 trials of 2.5 s, without warm-up and cooldown: 7 rounds of two cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import mean, median
from typing import Any

import yaml

from orchestrator.runs.models import Trial
from perf.fidelity.pitwall import Pitwall, PitwallError
from perf.fidelity.target import Target
from perf.harness.report import Requirement, render_table

CONNECTIONS = (4, 8)
ROUNDS = 7
DURATION_S = 2.5
KEY = "overhead_per_trial_s"
LIMIT = Requirement(relation="<=", limit=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Seconds between the starts of consecutive trials, without the load.

    `within`: of trials of one round; `between`: from the last trial of a round to the next round,
    which the server starts.
    """

    within: tuple[float, ...]
    between: tuple[float, ...]

    @property
    def all(self) -> tuple[float, ...]:
        return self.within + self.between


def measure_overhead(pitwall: Pitwall, target: Target) -> Overhead:
    source = yaml.safe_dump(_build_definition(target))
    load_s = DURATION_S * len(CONNECTIONS) * ROUNDS
    trials = pitwall.measure_cases("overhead", source, rounds=ROUNDS, load_s=load_s)
    return compute_overhead(trials)


def compute_overhead(trials: Sequence[Trial]) -> Overhead:
    """PitwallError if a trial was not started."""
    within: list[float] = []
    between: list[float] = []
    for one, following in pairwise(sorted(trials, key=lambda each: each.position)):
        seconds = (_get_start(following) - _get_start(one)).total_seconds() - DURATION_S
        (within if one.round == following.round else between).append(seconds)
    return Overhead(within=tuple(within), between=tuple(between))


def _get_start(trial: Trial) -> datetime:
    if trial.started_at is None:
        raise PitwallError(f"trial {trial.position + 1} was not started: {trial.message}")
    return trial.started_at


def get_measured(overhead: Overhead) -> dict[str, float]:
    return {
        KEY: median(overhead.all),
        "overhead_within_round_s": median(overhead.within),
        "overhead_between_rounds_s": median(overhead.between),
    }


def build_requirements() -> dict[str, Requirement | None]:
    return {KEY: LIMIT, "overhead_within_round_s": None, "overhead_between_rounds_s": None}


def format_table(overhead: Overhead) -> str:
    parts = (
        ("in a round", overhead.within),
        ("between rounds", overhead.between),
        ("all", overhead.all),
    )
    rows = [
        (name, str(len(each)), f"{median(each):.2f}", f"{mean(each):.2f}", f"{max(each):.2f}")
        for name, each in parts
    ]
    return render_table(("Overhead per trial", "pairs", "median s", "mean s", "max s"), rows)


def _build_definition(target: Target) -> dict[str, Any]:
    return {
        "version": 1,
        "title": "Overhead per trial",
        "subject": {"start": target.argv("{port}"), "ready": {"path": "/hello"}},
        "load": {
            "tool": "oha",
            "path": "/hello",
            "connections": "{connections}",
            "warmup_s": 0,
            "duration_s": DURATION_S,
        },
        "matrix": {"connections": list(CONNECTIONS)},
        "limits": {"target": {"cpus": 1}, "generator": {"cpus": 1}},
        "rounds": ROUNDS,
        "cooldown_s": 0,
    }
