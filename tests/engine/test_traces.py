"""Spans of a real run go to a collector by OTLP, and all of them are found by the run's id."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from devstack.demo_client import Client
from devstack.places import CHECKOUT
from orchestrator.accounts.services import create_token
from orchestrator.core.spans import mark_span, span
from orchestrator.operations.process_life import begin_process
from orchestrator.runs.models import Build, Job, Run, Trial
from perf.harness.environments import build_venv
from perf.harness.web_servers import serve_web
from tests.engine.test_over_ssh import add_confirmed
from tests.support.engine import assert_measured, running_engine, server
from tests.support.factories import Personas, make_definition, make_project
from tests.support.sshd import start_sshd

#: Its pages need no collected files then.
DEBUG = {"PITWALL_DEBUG": "1"}
PROGRAM = CHECKOUT / "tests" / "support" / "otlp_collector.py"
STEPS = {"step prepare", "step start", "step poll"}
CALLS = {"agent prepare", "agent take-bundle", "agent start", "agent status"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """What came, by the ids of spans."""

    by_id: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, path: Path) -> "Spans":
        spans = [json.loads(line) for line in path.read_text().splitlines()]
        return cls(by_id={each["id"]: each for each in spans})

    def list_spans(self, run: Run, name: str = "") -> list[dict[str, Any]]:
        return [
            each
            for each in self.by_id.values()
            if each["attributes"].get("pitwall.run") == str(run.pk) and name in ("", each["name"])
        ]

    def line(self, span: dict[str, Any]) -> tuple[str, ...]:
        """Its name, and of all above it, of the same trace; KeyError where one is lost."""
        if not span["parent"]:
            return (span["name"],)
        above = self.by_id[span["parent"]]
        assert above["trace"] == span["trace"]
        return (span["name"], *self.line(above))


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    environment: dict[str, str]
    spans: Path


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    """It and the packages that send to it are in an environment of their own, as they are in no
    process that has no traces."""
    programs = build_venv("venv-traces", CHECKOUT / "requirements" / "traces.txt")
    (packages,) = programs.parent.glob("lib/python*/site-packages")
    spans = tmp_path / "spans.jsonl"
    argv = [str(programs / "python"), str(PROGRAM), str(spans)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        port = int(running.stdout.readline())
        yield Collector(
            environment={
                "PITWALL_TRACES": "1",
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
                "PYTHONPATH": str(packages),
                "NO_PROXY": "127.0.0.1",
            },
            spans=spans,
        )
        running.terminate()


@pytest.mark.engine
def test_all_spans_of_a_run_have_its_id(
    team: Personas, collector: Collector, tmp_path: Path
) -> None:
    token = create_token(member=team.alice, name="ci").secret
    with (
        start_sshd(tmp_path) as machine,
        running_engine(tmp_path, **collector.environment) as engine,
        serve_web("orchestrator.config.wsgi", tmp_path, {**engine.environment, **DEBUG}) as web,
    ):
        # The mirror lies in the data folder of the engine.
        project, shas = make_project(team.alice, tmp_path / "origin", [server(), server(start="#")])
        make_definition(team.alice, project)
        wanted = {"benchmark": "hello", "baseline": shas[0], "contenders": [shas[1]], "rounds": 1}
        add_confirmed(machine, team)
        client = Client(f"http://127.0.0.1:{web.port}", token)
        made = client.post("/api/v1/runs", {**wanted, "hosts": ["bench-1"]})
        run = engine.finish(Run.objects.get(pk=made["id"]))
    assert_measured(run)

    # Both have ended in order, so that nothing was kept back.
    spans = Spans.read(collector.spans)
    lines = {spans.line(each) for each in spans.by_id.values()}
    assert ("task pump",) in lines
    check_request(spans, run)
    check_steps(spans, run)
    check_what_hosts_did(spans, run)


def check_request(spans: Spans, run: Run) -> None:
    (created,) = spans.list_spans(run, "create run")
    assert spans.line(created) == ("create run", "request POST")
    assert created["service"] == "pitwall-web"
    attributes = spans.by_id[created["parent"]]["attributes"]
    assert (attributes["pitwall.route"], attributes["pitwall.status"]) == ("/api/v1/runs", "201")
    assert attributes["pitwall.request"] == created["attributes"]["pitwall.request"]


def check_steps(spans: Spans, run: Run) -> None:
    """Each call at the host is below what the agent was asked for, a step, and the task."""
    job = Job.objects.get(run=run)
    of_job = [each for each in spans.list_spans(run) if each["name"] != "create run"]
    assert {each["attributes"].get("pitwall.job") for each in of_job} == {str(job.pk)}
    assert {each["service"] for each in of_job} == {"pitwall-worker"}
    lines = {spans.line(each) for each in of_job}
    assert {line[-1] for line in lines} == {"task advance"}
    assert {line[-2] for line in lines if len(line) > 1} == STEPS
    assert {line[1] for line in lines if line[0] == "ssh run"} >= CALLS
    assert ("ssh put", "step start", "task advance") in lines
    assert ("ssh get", "collect", "step poll", "task advance") in lines
    connected = spans.list_spans(run, "ssh connect")[0]["attributes"]
    assert connected["pitwall.host"] == "bench-1"
    assert "@127.0.0.1:" in connected["pitwall.address"]
    failed = {each["name"] for each in of_job if each["failed"]}
    assert failed == {"agent prepare"}, "only the first question found no agent there"


def check_what_hosts_did(spans: Spans, run: Run) -> None:
    """Each build and each trial has a span, which is as long as it took there."""
    trials = {str(trial.pk): trial for trial in Trial.objects.filter(job__run=run)}
    assert len(trials) == 2
    for name in ("trial", "collect"):
        attributes = [each["attributes"] for each in spans.list_spans(run, name)]
        assert sorted(each["pitwall.trial"] for each in attributes) == sorted(trials)
        assert {each["pitwall.host"] for each in attributes} == {"bench-1"}
    for each in spans.list_spans(run, "trial"):
        trial = trials[each["attributes"]["pitwall.trial"]]
        assert trial.started_at is not None
        assert trial.ended_at is not None
        # Its first and last event in the journal, which enclose the times of its result.
        assert each["began_ns"] / 1e9 <= trial.started_at.timestamp() + 1e-5
        assert each["ended_ns"] / 1e9 >= trial.ended_at.timestamp() - 1e-5
    built = {each["attributes"]["pitwall.commit"] for each in spans.list_spans(run, "build")}
    assert built == {build.commit.sha for build in Build.objects.filter(job__run=run)}


def test_without_tracing_there_are_no_spans() -> None:
    assert span("one", more=1) is span("another")
    with span("one"):
        mark_span(run="r1")
    assert not [name for name in sys.modules if name.startswith("opentelemetry")]


def test_missing_packages_for_tracing_are_reported(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TRACES = True
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ImproperlyConfigured, match=r"needs requirements/traces\.txt"):
        begin_process("web")
