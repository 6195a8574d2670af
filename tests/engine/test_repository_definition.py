"""Chosen cases of one commit, by the definition that the commit itself holds, measured for real."""

from pathlib import Path

import pytest

from orchestrator.benchmarks.services import import_definition
from orchestrator.runs.models import Trial
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.services import create_run
from tests.support.engine import Engine, assert_measured, server
from tests.support.factories import DEFINITION, Personas, make_local_host, make_project

pytestmark = pytest.mark.engine

KEPT = DEFINITION.replace("connections: [4]", "connections: [1, 2, 4]").replace(
    "rounds: 5", "rounds: 1"
)


def test_selected_cases_of_a_repository_definition_are_measured(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    files = {**server(), ".pitwall.yaml": KEPT}
    project, (sha,) = make_project(team.alice, tmp_path / "origin", [files])
    make_local_host(team.alice)
    import_definition(member=team.alice, project=project, path=".pitwall.yaml")
    request = RunRequest(
        benchmark="server", baseline="main", contenders=(), cases="connections > 1",
        hosts=("here",),
    )  # fmt: skip
    run = engine.finish(create_run(member=team.alice, request=request))

    assert_measured(run)
    assert run.definition.commit is not None
    assert run.definition.commit.sha == sha
    trials = Trial.objects.filter(job__run=run).select_related("case")
    assert {trial.case.label: trial.state for trial in trials} == {
        "connections 2": "measured", "connections 4": "measured",
    }  # fmt: skip
