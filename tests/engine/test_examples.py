"""The examples of docs/examples, each measured for real with a small repository of its kind."""

import os
import shlex
from pathlib import Path

import pytest

from devstack.postgres import choose_identity
from devstack.postgres_binaries import choose_binaries
from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Run, Trial
from tests.support.engine import assert_measured, running_engine
from tests.support.examples import GROUPS, LONG, require_programs, start_example
from tests.support.factories import Personas, make_local_host
from tests.support.programs import tool

pytestmark = pytest.mark.engine

POSTGRES = frozenset({"initdb", "postgres"})


@pytest.fixture
def host(team: Personas) -> None:
    make_local_host(team.alice)


@pytest.mark.parametrize("group", GROUPS, ids="+".join)
def test_examples_without_packages_are_measured(
    team: Personas, host: None, group: tuple[str, ...], tmp_path: Path
) -> None:
    for slug in group:
        require_programs(slug)
    with running_engine(tmp_path / "engine") as engine:
        runs = [start_example(team.alice, slug, tmp_path) for slug in group]
        for run in runs:
            check_trials(engine.finish(run, timeout_s=180))


@pytest.mark.slow
@pytest.mark.parametrize("slug", LONG)
def test_an_example_with_packages_is_measured(
    team: Personas, host: None, slug: str, programs: Path, tmp_path: Path
) -> None:
    require_programs(slug, provided=POSTGRES)
    more = {"PITWALL_GHZ": str(tool("ghz"))} if slug == "grpc" else {}
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    with running_engine(tmp_path / "engine", PATH=path, **more) as engine:
        run = start_example(team.alice, slug, tmp_path)
        check_trials(engine.finish(run, timeout_s=400))


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the programs of PostgreSQL, which also root can start there."""
    binaries = choose_binaries(None)
    identity = choose_identity(binaries)
    if identity.user is not None:
        pytest.skip("root cannot start PostgreSQL without user namespaces")
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in POSTGRES:
        command = shlex.join([*identity.prefix, str(binaries.folder / name)])
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def check_trials(run: Run) -> None:
    """Each case has responses, no errors, and passed checks before and after its load."""
    assert_measured(run)
    trials = list(Trial.objects.filter(job__run=run).select_related("case"))
    assert len(trials) == run.definition.benchmark.cases.count()
    for trial in trials:
        assert (trial.state, trial.message) == ("measured", ""), trial.case.label
        checks = trial.provenance["checks"]
        assert [each for each in checks if each["problem"]] == [], trial.case.label
        values = load_values([trial.pk])[trial.pk]
        assert values["requests.ok"] > 0
        assert values["requests.errors"] == 0, trial.case.label
