"""Searches for a capacity and stepped loads, measured by the whole engine."""

import sys
from pathlib import Path

import pytest

from orchestrator.benchmarks.capacity_rates import compute_share_rates
from orchestrator.comparisons.compare import compare_commits
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import LoadResult
from orchestrator.runs.models import Run, Trial
from tests.support.engine import Engine, assert_measured
from tests.support.factories import Personas, make_definition, make_project, make_shared_host
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
  search: {objective: "p50 < 100 ms and success >= 99 %", low: 25, high: 2000,
    probe_s: 1, max_probes: 14}
"""
STEPS = """
  connections: 2
  warmup_s: 0.2
  steps: [{rate: 20, duration_s: 1}, {rate: 40, duration_s: 1}, {rate: 60, duration_s: 1}]
"""


def measure(
    engine: Engine, team: Personas, folder: Path, load: str, *, commits: int = 1, rounds: int = 1
) -> Run:
    servers = [{"server.py": f"{SERVER}# {number}"} for number in range(commits)]
    project, shas = make_project(team.alice, folder, servers)
    make_definition(team.alice, project, source=DEFINITION % (sys.executable, load))
    make_shared_host(team.alice)
    return engine.finish(run_of(team.alice, shas, rounds=rounds), timeout_s=240)


@pytest.mark.slow
def test_a_capacity_search_is_measured(engine: Engine, team: Personas, tmp_path: Path) -> None:
    run = measure(engine, team, tmp_path / "origin", SEARCH)
    assert_measured(run)
    trial = Trial.objects.get(job__run=run)
    readings = load_values([trial.pk])[trial.pk]
    assert readings["capacity.probes"] > 4
    assert readings.get("capacity.high", 0.0) < 500
    assert set(readings) <= {f"capacity.{name}" for name in ("rate", "low", "high", "probes")}


@pytest.mark.slow
def test_commits_are_compared_at_shares_of_the_capacity_of_the_baseline(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    run = measure(engine, team, tmp_path / "origin", SEARCH, commits=2, rounds=2)
    assert_measured(run)
    trials = {
        (trial.round, trial.variant.position): trial
        for trial in Trial.objects.filter(job__run=run).select_related("variant__commit")
    }
    values = load_values([trial.pk for trial in trials.values()])
    assert {trial.validity for trial in trials.values()} <= {"valid", "suspect"}, [
        trial.reasons for trial in trials.values()
    ]
    searched, other = (values[trials[1, position].pk] for position in (0, 1))
    for readings in (searched, other):
        assert readings["capacity.probes"] > 4
        assert readings["capacity.low"] < readings["capacity.rate"] < readings["capacity.high"]
        assert readings["capacity.rate"] < 500
        assert set(readings) == {f"capacity.{name}" for name in ("rate", "low", "high", "probes")}
    # Both commits have the rates that the baseline's capacity gives.
    rates = compute_share_rates(searched["capacity.rate"])
    for position in (0, 1):
        loads = LoadResult.objects.filter(trial=trials[2, position]).order_by("number")
        assert tuple(load.rate for load in loads) == rates
        assert all(load.encoded and load.passed is None for load in loads)
    measured = values[trials[2, 1].pk]
    assert measured.keys() >= {f"capacity.at_{share}.latency.p50" for share in (50, 80, 95)}
    assert not measured.keys() & {"latency.p50", "requests.rate", "capacity.rate"}
    report = compare_commits(
        team.alice,
        benchmark=run.definition.benchmark,
        baseline=trials[1, 0].variant.commit,
        contender=trials[1, 1].variant.commit,
        run=run,
    )
    (case,) = report.cases
    deciding = {metric.key for metric in case.metrics if metric.primary}
    assert deciding <= {f"capacity.at_{share}.latency.p50" for share in (50, 80, 95)}
    assert "capacity.at_50.latency.p50" in deciding


def test_each_step_of_a_load_is_measured(engine: Engine, team: Personas, tmp_path: Path) -> None:
    run = measure(engine, team, tmp_path / "origin", STEPS)
    assert_measured(run)
    trial = Trial.objects.get(job__run=run)
    assert trial.state == "measured"
    keys = list(load_values([trial.pk])[trial.pk])
    assert any(key.startswith("latency.") for key in keys), keys
