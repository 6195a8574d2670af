"""A load tool that leaves garbage, half a report, none, or one of other requests.

It is oha, but spoils what oha wrote where the path of the request names a lie.
"""

import sys

import pytest

from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Run, Trial
from tests.support.engine import MEASURED
from tests.support.planted_faults import Laboratory, codes, reason
from tests.support.programs import tool

pytestmark = [pytest.mark.engine, pytest.mark.django_db]

OHA = """#!{python}
import json, os, subprocess, sys
from pathlib import Path

OHA = {oha!r}
lie = sys.argv[-1].rpartition("/")[2]
out = Path(sys.argv[sys.argv.index("-o") + 1]) if "-o" in sys.argv else None
if out is None or lie == "none":
    os.execv(OHA, [OHA, *sys.argv[1:]])
if lie == "silence":
    sys.exit(0)
if lie == "failure":
    sys.exit("the moon is in the wrong house")
subprocess.run([OHA, *sys.argv[1:]], check=True)
report = out.read_text()
if lie == "garbage":
    out.write_bytes(b"\\x00\\xff mostly harmless")
elif lie == "half":
    out.write_text(report[: len(report) // 2])
elif lie == "list":
    out.write_text("[1, 2, 3]")
elif lie == "others":
    told = json.loads(report)
    told["statusCodeDistribution"]["200"] += 1000
    out.write_text(json.dumps(told))
"""
LIES = ("silence", "failure", "garbage", "half", "list", "others", "none")
SOURCE = """
version: 1
title: A tool that lies
subject:
  start: [%s, lying.py, --port, "{port}"]
  ready: {body: "Hello, World!"}
load: {path: "/{lie}", connections: 2, duration_s: 0.4, warmup_s: 0.1}
matrix: {lie: [%s]}
rounds: 1
cooldown_s: 0
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    program = tmp_path_factory.mktemp("tool") / "oha"
    program.write_text(OHA.format(python=sys.executable, oha=str(tool("oha"))))
    program.chmod(0o755)
    return {"PITWALL_OHA": str(program)}


@pytest.fixture(scope="module")
def run(lab: Laboratory) -> Run:
    return lab.measure("tools", SOURCE % (sys.executable, ", ".join(LIES)))


def failed(run: Run, lie: str) -> Trial:
    trials = Trial.objects.filter(job__run=run, case__parameters__lie=lie)
    assert [each.state for each in trials] == ["failed"] * 2
    assert not load_values(trials.values_list("pk", flat=True))
    return trials[0]


@pytest.mark.parametrize(
    ("lie", "code", "message"),
    [
        ("silence", "tool_failed", "the load tool left no tool.json"),
        ("failure", "tool_failed", "the moon is in the wrong house"),
        ("garbage", "tool_failed", "the output of the load tool cannot be read"),
        ("half", "tool_failed", "the output of the load tool cannot be read: JSONDecodeError"),
        ("list", "unreadable", "oha's output is a list, expected an object"),
    ],
)
def test_an_invalid_tool_report_gives_no_values(
    run: Run, lie: str, code: str, message: str
) -> None:
    trial = failed(run, lie)
    assert trial.reasons == [code]
    assert message in trial.message


def test_a_tool_report_of_other_requests_is_detected(lab: Laboratory, run: Run) -> None:
    for trial in lab.pair(run, lie="others"):
        assert "describe different requests" in reason(trial, "parse_mismatch")
        assert trial.validity == "invalid"
    lab.check_left_out(run, lie="others")


def test_the_same_tool_without_a_fault_is_valid(lab: Laboratory, run: Run) -> None:
    for trial in lab.pair(run, lie="none"):
        assert "parse_mismatch" not in codes(trial)


def test_the_run_reports_what_failed(run: Run) -> None:
    assert run.state in MEASURED
    assert run.message.count("every trial failed; the last: ") == 5
