"""Real jobs that go on until their cases are decided, or their budget is spent."""

from pathlib import Path

import pytest

from orchestrator.runs import budgets
from orchestrator.runs.case_status import load_case_statuses
from orchestrator.runs.models import HostLease, InterimAnalysis, Trial
from tests.support.engine import MEASURED, Engine, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)

pytestmark = [pytest.mark.engine, pytest.mark.quiet, pytest.mark.slow]

SLOWER = "hashlib.sha256(bytes(4_000_000)).digest()"


def test_a_clearly_slower_commit_is_decided_at_the_first_interim_analysis(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    versions = [server(wait_s=0), server(wait_s=0, extra=SLOWER)]
    project, shas = make_project(team.alice, tmp_path / "origin", versions)
    make_definition(team.alice, project)
    make_local_host(team.alice)
    run = engine.finish(make_run(team.alice, shas, until="decided"))
    assert run.state in MEASURED
    (case,) = load_case_statuses(run)
    assert case.analysis is not None
    # A busy machine may void a block: it is made up for by another one.
    assert (case.state, case.analysis.blocks) == ("decided", 5)
    assert case.text.startswith("decided after 5 blocks: regressed: ")
    trials = Trial.objects.filter(job__run=run)
    assert trials.filter(state="measured").count() == 2 * (5 + case.analysis.excluded)
    assert trials.filter(state="not needed").count() == 40 - 2 * (5 + case.analysis.excluded)
    assert run.message == "decided: 1 of 1 case after 5 blocks"
    assert not HostLease.objects.exists()


def test_equal_commits_end_equivalent_or_continue_to_later_interim_analyses(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    project, shas = make_project(
        team.alice, tmp_path / "origin", [server(), server(start="# the same")]
    )
    make_definition(team.alice, project)
    make_local_host(team.alice)
    run = engine.finish(make_run(team.alice, shas, until="decided", rounds=7))
    assert run.state in MEASURED
    looks = list(InterimAnalysis.objects.filter(job__run=run).order_by("blocks"))
    assert looks
    assert {look.blocks for look in looks} <= {5, 6, 7}
    assert not any(look.decided for look in looks[:-1])
    (case,) = load_case_statuses(run)
    assert case.state in {"decided", "undecided"}
    if case.state == "undecided":
        assert "needs about" in run.message or "may stay open" in run.message


def test_a_spent_budget_ends_a_run_and_reports_the_blocks_still_needed(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    project, shas = make_project(
        team.alice, tmp_path / "origin", [server(), server(start="# the same")]
    )
    make_definition(team.alice, project)
    make_local_host(team.alice)
    # A round is expected to take 3.6 s.
    run = engine.finish(make_run(team.alice, shas, until="decided", budget_s=9.0))
    assert run.state in MEASURED
    trials = Trial.objects.filter(job__run=run)
    done = trials.filter(state="measured").count()
    assert 2 <= done < 10
    assert budgets.sum_spent_s(run) <= 9.0 + 3.6
    skipped = trials.filter(state="skipped")
    assert skipped.count() == 40 - done
    assert {trial.message for trial in skipped} == {"budget spent"}
    assert run.message.splitlines()[0] == "budget spent: some rounds were skipped"
    assert "not decided: " in run.message
