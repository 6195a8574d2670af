"""A backfill of a real server: a commit that does not build is skipped, the others are measured."""

from pathlib import Path

import pytest

from orchestrator.results.models import Point
from orchestrator.runs.backfills import (
    BackfillRequest,
    explain_run,
    load_backfill_runs,
    plan_backfill,
    start_backfill,
)
from orchestrator.runs.earlier_commits import CommitSelection, CommitSource
from tests.support.engine import MEASURED, Engine, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_project,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]

BUILD = DEFINITION.replace("  start:", '  build: [["{python}", "check.py"]]\n  start:')
BROKEN = "raise SystemExit('undefined symbol: foo')\n"


def test_a_commit_that_does_not_build_is_skipped_and_the_others_are_measured(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    alice = team.alice
    checks = ["# fine\n", BROKEN, "# fine again\n"]
    project, shas = make_project(
        alice, tmp_path / "origin", [{**server(), "check.py": check} for check in checks]
    )
    make_definition(alice, project, source=BUILD)
    make_local_host(alice)
    selection = CommitSelection(source=CommitSource.LAST, count=3)
    request = BackfillRequest(benchmark="hello", hosts=("here",), selection=selection, rounds=2)
    backfill = start_backfill(member=alice, request=request)
    for run in load_backfill_runs(backfill):
        engine.finish(run)

    runs = {run.variants.all()[0].commit.sha: run for run in load_backfill_runs(backfill)}
    assert [runs[sha].state in MEASURED for sha in shas] == [True, False, True]
    assert runs[shas[1]].state == "failed"
    assert "undefined symbol: foo" in explain_run(runs[shas[1]])
    measured = Point.objects.filter(series__metric__key="requests.rate")
    assert set(measured.values_list("commit__sha", flat=True)) == {shas[0], shas[2]}

    # The valid commits need no second measurement, and the broken one is not tried again.
    usable = set(measured.filter(trials__gt=0).values_list("commit__sha", flat=True))
    plan = plan_backfill(member=alice, request=request)
    assert {commit.sha for commit in plan.commits} == {shas[0], shas[2]} - usable
    reasons = {each.commit.sha: each.reason for each in plan.skipped}
    assert reasons[shas[1]] == "failed in an earlier backfill"
