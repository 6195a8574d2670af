"""Inputs that `make fuzz` has found: each is now refused with the error of its parser."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.support import a_plan, a_trial
from tests.fuzz.inputs.agents import _FACTS
from tests.fuzz.inputs.registry import TARGETS
from tests.fuzz.inputs.results import _RESULT
from tests.fuzz.inputs.tools import Left

DEEP = b"[" * 100_000
WRK = {
    "requests": 10, "connections": 1, "duration_us": 10, "value_us": [10**12], "count": [1],
    "errors": {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0},
}  # fmt: skip


def status(**changes: Any) -> Any:
    fields = {"alive": True, "started": True, "now": 5.0, "offset": 0, "dropped": 0, "events": []}
    return "status", {**fields, **changes}


def change_sample(name: str, **changes: Any) -> Any:
    return TARGETS[name].samples()[0]._replace(**changes)


FOUND: dict[str, Any] = {
    "definition": b"version: 1\nlimits: {target: {memory: " + b"9" * 400 + b" GiB}}\n",
    "definition-data": {
        "version": 1,
        "title": "x",
        "subject": {"start": ["x"]},
        "load": {"connections": "{c}", "duration_s": 1},
        "matrix": {"c": ["{x}"]},
    },
    "miniature": DEEP,
    "condition": b"not " * 490 + b"tls",
    "reader-wrk": Left(json.dumps(WRK).encode(), None, b""),
    "reader-ghz": Left(None, DEEP, b""),
    "agent-plan": json.dumps(a_plan(a_trial("tools/x", cooldown_s=10**400))).encode(),
    "agent-journal": b'{"t": 1.0, "event": "x"}\n{"t": 2.0, "ev\n',
    "agent-follower": DEEP[:250] + b"\n\n",
    "agent-answers": status(now=10**40),
    "result-file": b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\xfe" * 40,
    "result-api": {**_RESULT, "metrics": {"\ud800": 1}},
}


@pytest.mark.parametrize("name", FOUND)
def test_an_earlier_finding_is_refused_by_its_reader(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    with pytest.raises(target.errors, match=r"\w"):
        target.read(FOUND[name], tmp_path)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("parser-wrk", {"result": {"tool_cpus": "many"}}),
        ("parser-wrk", {"result": {"tool_cpus": 0.1}}),
        ("parser-h2load", {"report": b'{"stdout": "requests: 1e5", "logged": {}}'}),
        ("parser-k6", {"rows": {"ok": 5}}),
        ("parser-script", {"report": DEEP}),
        ("parser-h2load", {"report": b'{"ended_s": 1' + b"0" * 400 + b"}"}),
    ],
)
def test_an_earlier_finding_is_refused_by_its_parser(
    name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    target = TARGETS[name]
    with pytest.raises(target.errors, match=r"\w"):
        target.read(change_sample(name, **changes), tmp_path)


def test_facts_that_the_database_cannot_store_are_replaced(tmp_path: Path) -> None:
    reply = json.dumps({"facts": {**_FACTS, "hostname": "a\0b\ud800"}}).encode()
    target = TARGETS["agent-answers"]
    with contextlib.suppress(*target.errors):  # The tools that this host lacks.
        target.read(("facts", reply), tmp_path)
