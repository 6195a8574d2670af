"""Every protocol of oha measured by the whole engine, with certificates that Pitwall made."""

import sys
from pathlib import Path

import pytest

from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Run, Trial
from tests.support.engine import Engine, assert_measured
from tests.support.factories import Personas, make_definition, make_local_host, make_project
from tests.support.factories import make_run as run_of

pytestmark = pytest.mark.engine

SUPPORT = Path(__file__).parents[1] / "support"
SERVER = (SUPPORT / "servers" / "any_protocol.py").read_text()
CLIENT = (SUPPORT / "clients" / "over_http3.py").read_text()
DEFINITION = """
version: 1
title: One answer over every protocol
subject:
  start: [%s, server.py, --port, "{port}", --tls, "{tls}", --cert, "{cert}", --key, "{key}"]
  ready: {body: "Hello, World!"}
load:
  protocol: "{protocol}"
  tls: "{tls}"
  connections: 2
  rate: 100
  duration_s: 0.6
  warmup_s: 0.2
checks:
  - {text: "Hello, World!", response_headers: {content-type: text/plain}, encoding: identity}
matrix:
  protocol: [h1, h2, h3]
  tls: [false, true]
exclude:
  - {protocol: h3, tls: false}
rounds: 1
cooldown_s: 0
"""


def measure(engine: Engine, team: Personas, folder: Path, source: str) -> Run:
    files = {"server.py": SERVER, "client.py": CLIENT}
    project, shas = make_project(team.alice, folder, [files, {**files, "NOTES": "the same\n"}])
    make_definition(team.alice, project, source=source % sys.executable)
    make_local_host(team.alice)
    return engine.finish(run_of(team.alice, shas, rounds=1), timeout_s=180)


@pytest.mark.slow
def test_a_load_uses_the_requested_protocol(engine: Engine, team: Personas, tmp_path: Path) -> None:
    run = measure(engine, team, tmp_path / "origin", DEFINITION)
    assert_measured(run)
    trials = list(Trial.objects.filter(job__run=run).select_related("case"))
    assert {trial.state for trial in trials} == {"measured"}
    cases = {
        (trial.case.parameters["protocol"], trial.case.parameters["tls"]): trial for trial in trials
    }
    assert set(cases) == {
        ("h1", False), ("h1", True), ("h2", False), ("h2", True), ("h3", True),
    }  # fmt: skip
    for (protocol, _), trial in cases.items():
        assert trial.provenance["protocol"] == protocol
        assert [check["problem"] for check in trial.provenance["checks"]] == [None] * 4
        assert not any("protocol" in reason for reason in trial.reasons)
        assert load_values([trial.pk])[trial.pk]["requests.ok"] > 0
        assert load_values([trial.pk])[trial.pk]["requests.errors"] == 0


@pytest.mark.slow
def test_a_script_tool_measures_http3(engine: Engine, team: Personas, tmp_path: Path) -> None:
    script = f'  tool: script\n  command: [{sys.executable}, "{{tree}}/client.py"]\n'
    source = DEFINITION.replace("load:\n", f"load:\n{script}").replace("  rate: 100\n", "")
    source = source.replace("[h1, h2, h3]", "[h3]").replace("duration_s: 0.6", "requests: 50")
    source = source.replace("warmup_s: 0.2", "warmup_s: 0")
    run = measure(engine, team, tmp_path / "origin", source)
    assert_measured(run)
    for trial in Trial.objects.filter(job__run=run):
        assert trial.state == "measured"
        assert trial.provenance["protocol"] == "h3"
        # Before and after the load the program itself asks once.
        own = [each for each in trial.provenance["checks"] if each["name"] == "load"]
        responses = [(each["protocol"], each["status"], each["length"]) for each in own]
        assert responses == [("h3", 200, 13)] * 2
        assert not {"protocol", "response_changed"} & set(trial.reasons)
        assert load_values([trial.pk])[trial.pk]["requests.ok"] == 50


@pytest.mark.slow
def test_a_server_that_falls_back_has_no_values(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    source = DEFINITION.replace('"{key}"]', '"{key}", --alpn, http/1.1]')
    source = source.replace("[h1, h2, h3]", "[h2]").replace("tls: [false, true]", "tls: [true]")
    source = source.replace("exclude:\n  - {protocol: h3, tls: false}\n", "")
    # Each of the two trials waits so long for an answer that never comes.
    source = source.replace('World!"}\nload', 'World!", timeout_s: 12}\nload')
    run = measure(engine, team, tmp_path / "origin", source)
    assert run.state == "failed"
    assert "HTTP/1.1" in run.message
    assert not Trial.objects.filter(job__run=run, state="measured").exists()
