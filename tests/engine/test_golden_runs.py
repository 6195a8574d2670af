"""A golden run on the real engine: measured, judged, and a failure takes its host out of use."""

from pathlib import Path

import pytest

from orchestrator.calibration import golden
from orchestrator.calibration.models import GoldenOutcome
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.runs.golden import NewGolden, set_golden
from tests.support.engine import Engine, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_project,
    make_shared_host,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def golden_run(engine: Engine, team: Personas, commit: str) -> GoldenOutcome:
    """The golden run at that commit, from its tick to the verdict; beat would do it later."""
    new = NewGolden(benchmark="hello", commit=commit, every_hours=1)
    check = set_golden(member=team.alice, host_id=Host.objects.get().pk, new=new)
    golden.advance_golden_checks(utc_now())

    def is_started() -> bool:
        # A tick of the engine may start it at the same time.
        check.refresh_from_db()
        return check.last_run is not None

    engine.wait_for(is_started)
    assert check.last_run is not None
    engine.finish(check.last_run)
    golden.advance_golden_checks(utc_now())
    engine.wait_for(lambda: GoldenOutcome.objects.filter(run=check.last_run).exists())
    return GoldenOutcome.objects.get(run=check.last_run)


def test_a_golden_run_is_measured_evaluated_and_quarantines_a_host(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    project, (good, broken) = make_project(
        team.alice, tmp_path / "origin", [server(), server(start="sys.exit(3)")]
    )
    make_definition(team.alice, project, source=DEFINITION.replace("rounds: 5", "rounds: 3"))
    make_shared_host(team.alice)

    outcome = golden_run(engine, team, good)
    assert outcome.verdict == "learning"
    (readings,) = outcome.readings.values()
    assert readings["requests.rate"] > 0
    assert Host.objects.get().state == "ready"

    assert golden_run(engine, team, broken).verdict == "failed"
    host = Host.objects.get()
    assert host.state == "quarantined"
    assert host.message.startswith("golden run: failed: ")
