"""The suite whose true latencies are known, measured for real: what tools say is near them."""

import json
import zlib
from pathlib import Path

import pytest

from orchestrator.measurements.tool_errors import load_tool_errors
from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial
from tests.support.engine import ROOT, Engine, assert_measured
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)

pytestmark = [pytest.mark.engine, pytest.mark.quiet, pytest.mark.slow]

SUITE = ROOT / "agents" / "suites" / "known-latency"


#: Those that measure HTTP and are not programs of a definition.
TOOLS = ["h2load", "k6", "oha", "wrk"]


def test_the_error_of_each_tool_is_measured(engine: Engine, team: Personas, tmp_path: Path) -> None:
    files = {"server.py": (SUITE / "server.py").read_text()}
    project, shas = make_project(
        team.alice, tmp_path / "origin", [files, {**files, "NOTES": "the same\n"}]
    )
    # Whether the truth holds is for quiet machines: with the check, a busy one fails the trial.
    source = (SUITE / "benchmark.yaml").read_text()
    source = (
        source.replace("duration_s: 10", "duration_s: 3")
        .replace("path: /stats,", "path: /ready,")
        .replace("load_tool: [oha]", f"load_tool: [{', '.join(TOOLS)}]")
    )
    make_definition(team.alice, project, source=source)
    make_local_host(team.alice)

    run = engine.finish(make_run(team.alice, shas, rounds=1), timeout_s=180)

    assert_measured(run)
    trials = Trial.objects.filter(job__run=run)
    assert [trial.state for trial in trials] == ["measured"] * 2 * len(TOOLS)
    log = Artifact.objects.get(trial=trials[0], name="server.log")
    kept = json.loads(zlib.decompress(log.compressed).splitlines()[-1])["kept"]
    assert kept["p50"] < kept["p90"] < kept["p99"]
    trials.update(validity="valid")
    tools = load_tool_errors(team.alice)
    assert [each.tool for each in tools] == TOOLS
    for tool in tools:
        errors = {each.metric.key: each for each in tool.errors}
        assert set(errors) == {"latency.p50", "latency.p90", "latency.p99", "latency.mean"}
        # A server cannot answer early, and no tool may say that it did.
        assert errors["latency.p50"].low > -0.02
        assert errors["latency.p50"].low <= errors["latency.p50"].median < 1
