"""What is retained without a pin, because other data depend on it."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.models import Project
from orchestrator.calibration.models import GoldenOutcome
from orchestrator.core.clock import utc_now
from orchestrator.reports.models import SavedReport
from orchestrator.results.models import Baseline, ChangePoint, Series
from orchestrator.retention.pins import load_kept
from orchestrator.runs.golden import NewGolden, set_golden
from orchestrator.runs.models import Run, Schedule
from tests.support.factories import Personas, make_run
from tests.support.world import World


class ChangedWorld(World):
    """With a measured run of three commits, and change points."""

    @property
    def commit_ids(self) -> list[int]:
        return [commit.pk for commit in self.commits]

    def change(self, state: str, **more: Any) -> ChangePoint:
        return ChangePoint.objects.create(
            series=Series.objects.get(metric__key="requests.rate"),
            commit_id=self.commit_ids[1],
            before_id=self.commit_ids[0],
            kind="alert", change=-0.1, low=-0.12, high=-0.08, p_value=1e-6, level_before=1000,
            level_after=900, regressed=True, recent=True, state=state, found_at=utc_now(),
            revised_at=utc_now(), **more,
        )  # fmt: skip


@pytest.fixture
def world(personas: Personas, data_dir: Path, tmp_path: Path) -> ChangedWorld:
    world = ChangedWorld.make(personas, tmp_path)
    world.run = world.measure_run(1000, 900, 800, rounds=2)
    return world


def test_an_unreferenced_project_retains_nothing(world: ChangedWorld) -> None:
    kept = load_kept(world.project)
    assert (kept.commits, kept.runs, kept.points) == ({}, {}, {})


def test_the_baseline_of_a_schedule_is_retained(world: ChangedWorld) -> None:
    schedule = Schedule.objects.create(
        team=world.alice.team,
        benchmark=world.benchmark,
        name="nightly",
        cron="0 3 * * *",
        baseline_ref="main",
        created_by=world.alice.user,
        next_at=utc_now(),
    )
    assert load_kept(world.project).commits == {}
    Run.objects.filter(pk=world.run.pk).update(schedule=schedule)
    kept = load_kept(world.project)
    assert kept.commits == {world.commit_ids[0]: ("baseline of the schedule nightly",)}


def test_points_and_reference_runs_of_golden_runs_are_retained(world: ChangedWorld) -> None:
    golden = NewGolden(benchmark="hello", commit=world.shas[0], every_hours=1)
    set_golden(member=world.alice, host_id=world.host.pk, new=golden)
    for run, is_reference in (
        (world.run, True),
        (make_run(world.alice, world.shas[:1]), False),
    ):
        GoldenOutcome.objects.create(
            run=run, host=world.host, verdict="learning" if is_reference else "drifted", epoch=0,
            is_reference=is_reference, at=utc_now(),
        )  # fmt: skip
    kept = load_kept(world.project)
    assert list(kept.points) == [world.commit_ids[0]]
    assert list(kept.runs) == [world.run.pk]
    assert kept.commits == {}


def test_only_both_ends_of_confirmed_changes_are_retained(world: ChangedWorld) -> None:
    change = world.change("refuted", run=world.run)
    assert load_kept(world.project).commits == {}
    ChangePoint.objects.filter(pk=change.pk).update(state="confirmed", culprit=world.commit_ids[2])
    kept = load_kept(world.project)
    assert kept.commits == dict.fromkeys(world.commit_ids, ("end of a confirmed change",))
    assert kept.runs == {world.run.pk: ("confirmed a change",)}


def test_baselines_of_histories_are_retained(world: ChangedWorld) -> None:
    case = world.benchmark.cases.get()
    Baseline.objects.create(case=case, commit_id=world.commit_ids[1], reason="new compiler")
    assert load_kept(world.project).commits == {world.commit_ids[1]: ("a history starts here",)}


@pytest.mark.parametrize(
    ("commit", "places"), [("newest", [2]), ("all", [0, 1, 2]), ("main", [2]), ("gone", [0, 1, 2])]
)
def test_commits_of_a_report_are_retained_or_all_if_undecidable(
    world: ChangedWorld, commit: str, places: list[int]
) -> None:
    SavedReport.objects.create(
        team=world.alice.team, slug="r", title="R", benchmark=world.benchmark,
        source=f"version: 1\ntitle: R\ncommit: {commit}\ntables:\n- rows: [connections]\n"
        "  columns: [{metric: requests.rate}]\n",
    )  # fmt: skip
    assert set(load_kept(world.project).commits) == {world.commit_ids[place] for place in places}


def test_other_projects_are_independent(
    world: ChangedWorld, personas: Personas, tmp_path: Path
) -> None:
    other = Project.objects.create(
        team=personas.mallory.team, slug="server", name="Server", repository_url=""
    )
    world.change("confirmed")
    assert load_kept(other).commits == {}
