"""A calibration on the real engine: one commit against itself, and what it says at the end."""

from pathlib import Path

import pytest

from orchestrator.calibration.calibrations import judge_calibration
from orchestrator.results.models import Calibration
from orchestrator.runs.calibration import NewCalibration, start_calibration
from orchestrator.runs.models import Trial
from tests.support.engine import Engine, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_project,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_a_calibration_measures_pairs_and_reports_the_smallest_change(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    project, _ = make_project(team.alice, tmp_path / "origin", [server()])
    make_definition(team.alice, project, source=DEFINITION)
    host = make_local_host(team.alice)
    new = NewCalibration(benchmark="hello", pairs=5)
    run = start_calibration(member=team.alice, host_id=host.pk, new=new)

    engine.finish(run)
    engine.wait_for(lambda: Calibration.objects.filter(run=run).exists())

    trials = Trial.objects.filter(job__run=run)
    assert trials.filter(state="measured").count() == 10
    # A machine that runs tests is not quiet, and its trials may be invalid for that: here it is
    # tried what their numbers give.
    Calibration.objects.all().delete()
    trials.update(validity="valid")
    calibration = judge_calibration(run)
    assert calibration is not None
    (readings,) = calibration.readings.values()
    for key in ("requests.rate", "latency.p50"):
        assert readings[key]["pairs"] == 5
        assert 0 < readings[key]["low"] < readings[key]["sigma"] < readings[key]["high"]
