"""A slower commit is detected, measured again, bisected, and raises an alert."""

from pathlib import Path

import pytest
from django.conf import settings

from orchestrator.alerts.models import Alert
from orchestrator.benchmarks.models import Commit
from orchestrator.results.models import Bisection
from orchestrator.runs.models import Run
from tests.support.engine import MEASURED, Engine, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_project,
    make_run,
    make_shared_host,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: Of nine commits the fifth burns time for each request; the fourth to sixth are not measured.
CULPRIT = 4
MEASURED_PLACES = (0, 1, 2, 6, 7, 8)


def versions() -> list[dict[str, str]]:
    # Also the quick ones burn some, or the load generator would be what is measured.
    quick, slow = "sum(range(20_000))", "sum(range(120_000))"
    return [
        {**server(extra=slow if number >= CULPRIT else quick, wait_s=0), "version": str(number)}
        for number in range(9)
    ]


def test_a_slower_commit_raises_an_alert(engine: Engine, team: Personas, tmp_path: Path) -> None:
    assert engine.data_dir == settings.DATA_DIR
    project, shas = make_project(team.alice, tmp_path / "origin", versions())
    source = DEFINITION.replace("duration_s: 0.6", "duration_s: 0.4").replace(
        "warmup_s: 0.2", "warmup_s: 0.1"
    )
    make_definition(team.alice, project, source=source)
    make_shared_host(team.alice)

    measured = make_run(team.alice, [shas[place] for place in MEASURED_PLACES], rounds=3)
    assert engine.finish(measured).state in MEASURED
    engine.wait_for(lambda: Alert.objects.filter(change_point__culprit__isnull=False).exists(),
                    timeout_s=300)  # fmt: skip

    alert = Alert.objects.get()
    culprit = Commit.objects.get(sha=shas[CULPRIT])
    assert (alert.state, alert.confirmed) == ("open", True)
    assert {row.culprit for row in alert.change_points.all()} == {culprit}
    change_point = alert.change_point
    assert change_point.state == "confirmed"
    assert change_point.regressed
    assert change_point.confirmed_change is not None
    assert abs(change_point.confirmed_change) > 0.2
    assert change_point.run is not None
    confirmed = [variant.commit.sha for variant in change_point.run.variants.all()]
    assert confirmed == [shas[2], shas[6]]
    search = Bisection.objects.earliest("pk")
    assert search.path == shas[3:7]
    steps = Run.objects.filter(trigger="bisect")
    assert 1 <= steps.count() <= 4
    assert {run.state for run in steps} <= MEASURED
