"""wrk, h2load and a program of the definition, measured by the whole engine."""

import json
import re
from pathlib import Path

import pytest

from orchestrator.benchmarks.models import Commit
from orchestrator.benchmarks.selectors import load_benchmark
from orchestrator.comparisons.compare import compare_commits
from orchestrator.histories.histories import load_history_choices
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.selectors import load_trial_details
from orchestrator.results.models import Metric
from orchestrator.runs.models import Trial
from tests.support.engine import Engine, assert_measured, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
    record_again,
)

pytestmark = pytest.mark.engine

PAGE = Path(__file__).parents[2] / "docs" / "script-tool.md"
TOOLS = """
version: 1
title: Hello by other tools
subject:
  start: ["{python}", "server.py", "--port", "{port}"]
  ready: {path: /hello, body: "Hello, World!", timeout_s: 5}
load:
  tool: "{client}"
  path: /hello
  connections: 2
  duration_s: 1
  warmup_s: 1
matrix:
  client: [wrk, h2load]
rounds: 1
cooldown_s: 0
"""
SCRIPT = TOOLS.replace('"{client}"', 'script\n  command: ["{python}", "{tree}/client.py"]').replace(
    "matrix:\n  client: [wrk, h2load]\n", ""
)


def client() -> str:
    """The program of the documentation, which also reports a custom time."""
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    reading = 'emit(type="reading", metric="script.whole_s", value=time.monotonic() - began)\n'
    return str(text).replace('emit(type="done")', reading + 'emit(type="done")')


def test_wrk_and_h2load_are_measured(engine: Engine, team: Personas, tmp_path: Path) -> None:
    files = server()
    project, shas = make_project(team.alice, tmp_path / "origin", [files, {**files, "N": "same\n"}])
    make_definition(team.alice, project, source=TOOLS)
    make_local_host(team.alice)
    run = engine.finish(make_run(team.alice, shas, rounds=1), timeout_s=120)
    assert_measured(run)
    trials = list(Trial.objects.filter(job__run=run).select_related("case"))
    assert {trial.state for trial in trials} == {"measured"}, [t.message for t in trials]
    assert {trial.provenance["tool"]["name"] for trial in trials} == {"wrk", "h2load"}
    for trial in trials:
        readings = load_values([trial.pk])[trial.pk]
        assert {"requests.rate", "latency.p50", "cpu.seconds_per_1k"} <= set(readings)


def test_a_script_tool_is_measured_and_its_values_are_compared(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    files = {**server(), "client.py": client()}
    project, shas = make_project(team.alice, tmp_path / "origin", [files, {**files, "N": "same\n"}])
    make_definition(team.alice, project, source=SCRIPT)
    make_local_host(team.alice)
    run = engine.finish(make_run(team.alice, shas, rounds=2), timeout_s=120)
    assert_measured(run)
    trials = list(Trial.objects.filter(job__run=run))
    assert {trial.state for trial in trials} == {"measured"}, [t.message for t in trials]

    shown = [info.key for info, _ in load_trial_details(trials[0]).measurements]
    assert shown[-2:] == ["script.threads_count", "script.whole_s"]
    benchmark = load_benchmark(team.alice, "hello")
    before, after = (Commit.objects.get(sha=sha) for sha in shas)
    # A busy machine may spoil trials; what is asked here is which metrics there are.
    Trial.objects.filter(job__run=run).update(validity="valid")
    record_again()
    report = compare_commits(team.alice, benchmark=benchmark, baseline=before, contender=after)
    compared = [metric.key for case in report.cases for metric in case.metrics]
    assert "script.whole_s" in compared
    assert "script.threads_count" not in compared
    assert load_history_choices(team.alice, benchmark).metrics[-1].key == "script.whole_s"


@pytest.mark.slow
def test_custom_metrics_above_the_quota_are_dropped_with_a_message(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    Metric.objects.bulk_create(
        Metric(team=team.alice.team, key=f"script.m{number}_s") for number in range(499)
    )
    files = {**server(), "client.py": client()}
    project, shas = make_project(team.alice, tmp_path / "origin", [files])
    make_definition(team.alice, project, source=SCRIPT)
    make_local_host(team.alice)
    run = engine.finish(make_run(team.alice, shas, rounds=1), timeout_s=120)
    assert_measured(run)
    (trial,) = Trial.objects.filter(job__run=run)
    assert trial.state == "measured", trial.message
    shown = [info.key for info, _ in load_trial_details(trial).measurements]
    assert shown[-1] == "script.threads_count"
    assert "1 custom metric not stored: script.whole_s; a team" in trial.reasons[-1]


@pytest.mark.slow
def test_invalid_output_of_a_script_tool_is_shown(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    files = {**server(), "client.py": "print('on my way')\n"}
    project, shas = make_project(team.alice, tmp_path / "origin", [files, {**files, "N": "same\n"}])
    make_definition(team.alice, project, source=SCRIPT)
    make_local_host(team.alice)
    run = engine.finish(make_run(team.alice, shas, rounds=1), timeout_s=120)
    for trial in Trial.objects.filter(job__run=run):
        assert trial.state == "failed"
        assert "line 1 of the script's output" in json.dumps(trial.message)
        assert "on my way" in trial.message
