"""Searches for a capacity and stepped loads, measured by the whole engine."""

import sys
from pathlib import Path

import pytest

from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Run, Trial
from tests.support.engine import Engine, assert_measured
from tests.support.factories import Personas, make_definition, make_local_host, make_project
from tests.support.factories import make_run as run_of

pytestmark = pytest.mark.engine

#: Two requests at a time, each 10 ms: no more than 200 a second, whatever the machine.
SERVER = """
import http.server, sys, threading, time
workers = threading.Semaphore(2)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        with workers:
            time.sleep(0.01)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"Hello")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
DEFINITION = """
version: 1
title: Two workers
subject:
  start: [%s, server.py, "{port}"]
load: %s
rounds: 1
cooldown_s: 0
"""
SEARCH = """
  connections: 20
  warmup_s: 0.2
  search: {objective: "p99 < 100 ms and success >= 99 %", low: 25, high: 2000, probe_s: 1}
"""
STEPS = """
  connections: 2
  warmup_s: 0.2
  steps: [{rate: 20, duration_s: 1}, {rate: 40, duration_s: 1}, {rate: 60, duration_s: 1}]
"""


def measure(engine: Engine, team: Personas, folder: Path, load: str) -> Run:
    project, shas = make_project(team.alice, folder, [{"server.py": SERVER}])
    make_definition(team.alice, project, source=DEFINITION % (sys.executable, load))
    make_local_host(team.alice)
    return engine.finish(run_of(team.alice, shas, rounds=1), timeout_s=240)


def test_a_capacity_search_is_measured(engine: Engine, team: Personas, tmp_path: Path) -> None:
    run = measure(engine, team, tmp_path / "origin", SEARCH)
    assert_measured(run)
    trial = Trial.objects.get(job__run=run)
    assert trial.state == "measured"
    readings = load_values([trial.pk])[trial.pk]
    assert readings["capacity.probes"] > 4
    assert readings.get("capacity.high", 0.0) < 500
    assert set(readings) <= {f"capacity.{name}" for name in ("rate", "low", "high", "probes")}


def test_each_step_of_a_load_is_measured(engine: Engine, team: Personas, tmp_path: Path) -> None:
    run = measure(engine, team, tmp_path / "origin", STEPS)
    assert_measured(run)
    trial = Trial.objects.get(job__run=run)
    assert trial.state == "measured"
    keys = list(load_values([trial.pk])[trial.pk])
    assert any(key.startswith("latency.") for key in keys), keys
