"""False answers of a server under load: how many of them a trial reports, for each load tool."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orchestrator.loadtools.sampled_answers import describe_first_answer
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState
from perf.fidelity.loads import CALL, MESSAGE
from perf.fidelity.pitwall import Pitwall
from perf.harness.report import Requirement, render_table

SERVER = Path(__file__).parents[2] / "tests" / "support" / "servers" / "false_answers.py"
#: The kind of false answer, and the reason that reports it; "" is a note.
REASONS = {
    "replaces": "answers_changed",
    "shortens": "answers_changed",
    "closes": "connections_closed",
    "mixes": "answer_mixed",
    "forgets": "wrong_under_load",
    "caches": "",
}
#: The load of gRPC itself is not sampled, only a check of the definition.
GRPC_REASONS = {"replaces": "wrong_under_load"}
#: Long enough for several requests of the agent.
DURATION_S = 3
_ANSWER = hashlib.sha256(b"\x0a\x05Hello").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The kinds of false answers that were tried with a tool, and those that were not reported."""

    tried: tuple[str, ...]
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        return 1 - len(self.missed) / len(self.tried)


def measure_detections(pitwall: Pitwall, tools: Iterable[str]) -> dict[str, Detection]:
    """Measure one trial for each tool and each kind of false answer."""
    return {tool: _measure_detection(pitwall, tool) for tool in tools}


def get_measured(detections: Mapping[str, Detection]) -> dict[str, float]:
    return {f"{tool}_false_answers_detected": each.share for tool, each in detections.items()}


def build_requirements(detections: Mapping[str, Detection]) -> dict[str, Requirement | None]:
    return dict.fromkeys(get_measured(detections), Requirement(relation=">=", limit=1.0))


def format_table(detections: Mapping[str, Detection]) -> str:
    rows = []
    for tool, each in detections.items():
        found = f"{len(each.tried) - len(each.missed)} of {len(each.tried)}"
        rows.append((tool, found, ", ".join(each.missed) or "-"))
    return render_table(("False answers", "detected", "missed"), rows)


def _measure_detection(pitwall: Pitwall, tool: str) -> Detection:
    reasons = GRPC_REASONS if tool == "ghz" else REASONS
    source = yaml.safe_dump(_build_definition(tool, list(reasons)))
    trials = pitwall.measure_cases(
        f"false-{tool}", source, rounds=1, load_s=DURATION_S * len(reasons)
    )
    missed = [
        lie
        for trial in trials
        if not _is_detected(trial, reasons[lie := str(trial.case.parameters["lie"])])
    ]
    return Detection(tried=tuple(reasons), missed=tuple(sorted(missed)))


def _is_detected(trial: Trial, code: str) -> bool:
    """Return whether the trial has no result, or the reason or note."""
    if trial.state != TrialState.MEASURED:
        return trial.state == TrialState.FAILED
    if not code:
        return bool(describe_first_answer(trial.provenance["answers"]))
    return code in {each.partition(":")[0] for each in trial.reasons}


def _build_definition(tool: str, lies: list[str]) -> dict[str, Any]:
    load: dict[str, Any] = {"path": "/", "connections": 4}
    check: dict[str, Any] = {"path": "/item", "text": "item 7"}
    if tool == "ghz":
        load = {"protocol": "grpc", "connections": 4, "grpc": {
            "call": CALL, "proto": "hello.proto", "data": MESSAGE,
        }}  # fmt: skip
        check = {"path": f"/{CALL}", "message_base64": "", "sha256": _ANSWER}
    start = [sys.executable, str(SERVER), "--port", "{port}", "--lie", "{lie}"]
    return {
        "version": 1,
        "title": f"False answers to {tool}",
        "subject": {"start": [*start, "--character", "liar"], "ready": {"path": "/"}},
        "load": {"tool": tool, **load, "warmup_s": 0, "duration_s": DURATION_S},
        "matrix": {"lie": lies},
        "checks": [check],
        "limits": {"target": {"cpus": 1}, "generator": {"cpus": 1}},
        "rounds": 1,
        "cooldown_s": 0,
    }
