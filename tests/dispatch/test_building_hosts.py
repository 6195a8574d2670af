"""Which hosts get the commit: those that run something of it."""

import json
from pathlib import Path

import pytest

from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.rounds import build_round_plans
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, Personas

SCRIPT = DEFINITION.replace(
    "  path: /hello\n",
    '  path: /hello\n  tool: script\n  command: ["{python}", "{tree}/client.py"]\n  tls: true\n',
)


@pytest.mark.parametrize(("source", "on"), [(DEFINITION, ["a"]), (SCRIPT, ["a", "b"])])
def test_the_load_generator_builds_only_for_its_own_program(
    source: str, on: list[str], personas: Personas, tmp_path: Path
) -> None:
    job = leased(personas, tmp_path, source)
    plan = json.loads(build_round_plans(job, JobHosts(job), ports={})["b"])
    assert {label for build in plan["builds"] for label in build["on"]} == set(on)


def test_a_host_that_only_builds_gets_no_key(personas: Personas, tmp_path: Path) -> None:
    plans = build_round_plans(job := leased(personas, tmp_path, SCRIPT), JobHosts(job), ports={})
    keys = {label: json.loads(plan)["tls"]["key"] is not None for label, plan in plans.items()}
    assert keys == {"a": True, "b": False}
