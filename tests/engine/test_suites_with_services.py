"""The suites with services, measured for real: Redis before the server, replicas behind a proxy."""

from pathlib import Path

import pytest

from devstack.redis import choose_binary
from orchestrator.measurements.environment import list_applied_limits
from orchestrator.runs.models import Run, Trial
from tests.support.engine import ROOT, Engine, assert_measured
from tests.support.factories import Personas, make_definition, make_local_host, make_project
from tests.support.factories import make_run as run_of

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SUITES = ROOT / "agents" / "suites"
#: Another commit of the same server.
SAME = {"NOTES": "nothing changed\n"}


def measure(engine: Engine, team: Personas, folder: Path, suite: str, source: str) -> Run:
    files = {path.name: path.read_text() for path in (SUITES / suite).glob("*.py")}
    project, shas = make_project(team.alice, folder, [files, {**files, **SAME}])
    make_definition(team.alice, project, source=source)
    make_local_host(team.alice)
    return engine.finish(run_of(team.alice, shas, rounds=1))


def short(suite: str) -> str:
    source = (SUITES / suite / "benchmark.yaml").read_text()
    return source.replace("duration_s: 5", "duration_s: 0.6").replace(
        "warmup_s: 1", "warmup_s: 0.2"
    )


def test_a_server_with_a_redis_service_is_measured(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    source = short("hello-redis").replace("[redis-server,", f"[{choose_binary().path},")
    run = measure(engine, team, tmp_path / "origin", "hello-redis", source)
    assert_measured(run)
    trials = list(Trial.objects.filter(job__run=run))
    assert [trial.state for trial in trials] == ["measured"] * 2
    for trial in trials:
        assert [each.process for each in list_applied_limits(trial)] == [
            "server",
            "load tool",
            "redis 1",
        ]
        assert "--redis" in trial.provenance["server_argv"]


def test_a_proxy_with_replicas_is_measured(engine: Engine, team: Personas, tmp_path: Path) -> None:
    source = short("hello-replicas").replace("connections: [6, 24]", "connections: [6]")
    run = measure(engine, team, tmp_path / "origin", "hello-replicas", source)
    assert_measured(run)
    trials = list(Trial.objects.filter(job__run=run))
    assert [trial.state for trial in trials] == ["measured"] * 2
    for trial in trials:
        to = trial.provenance["server_argv"][-1]
        assert len({place.rpartition(":")[2] for place in to.split(",")}) == 3
