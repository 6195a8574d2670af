"""A baseline that is measured in many runs: of its point only the newest values are kept."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from orchestrator.benchmarks.models import Benchmark
from orchestrator.comparisons.compare import compare_commits
from orchestrator.comparisons.points import load_points, load_run_points
from orchestrator.comparisons.sides import Side
from orchestrator.core.clock import utc_now
from orchestrator.core.ids import new_id
from orchestrator.measurements.recording import MeasuredRow
from orchestrator.results.models import Point
from orchestrator.results.models.series import MOST_VALUES
from orchestrator.retention.pruning import prune
from orchestrator.retention.settings import RetentionSettings, save_retention
from orchestrator.runs.models import Run, Trial
from tests.support.factories import Personas, finish_run, record
from tests.support.world import World

pytestmark = pytest.mark.django_db


class RepeatedWorld(World):
    """Its first commit is measured again and again."""

    def measure_against(self, contender: int, rate: float) -> Run:
        return finish_run(self.queue_run(0, contender, rounds=6), [1000, rate])

    def measure_often(self, commit: int) -> None:
        """As other runs would: more than a point keeps, at another speed."""
        points = Point.objects.filter(commit__sha=self.shas[commit]).select_related("series")
        keys = {point.series.metric.key for point in points}
        point = points[0]
        rows = [
            MeasuredRow(
                id=new_id(),
                benchmark=point.series.benchmark_id,
                case=point.series.case_id,
                host=point.series.host_id,
                commit=point.commit_id,
                at=utc_now() + timedelta(seconds=number),
                validity="valid",
                readings=dict.fromkeys(keys, 50.0 + number % 3),
                block=number + 1,
                epoch=point.epoch,
                configuration=point.configuration,
            )
            for number in range(MOST_VALUES + 20)
        ]
        with transaction.atomic():
            record(rows)

    def prune(self) -> None:
        """The retention takes the trials of all runs, and leaves the points."""
        wanted = RetentionSettings(
            files_days=1, distributions_days=1, trials_days=1, points_days=None, keep_every=None
        )
        save_retention(member=self.alice, project=self.project, wanted=wanted)
        prune(self.project, utc_now() + timedelta(days=3))

    def compared(self, contender: int, run: Run | None = None) -> Any:
        """Of each metric: change, interval and blocks."""
        before, after = self.commits[0], self.commits[contender]
        report = compare_commits(
            self.alice,
            benchmark=Benchmark.objects.get(),
            baseline=before,
            contender=after,
            run=run,
        )
        assert report.paired
        assert not report.mismatches
        (case,) = report.cases
        return {each.key: (each.change, each.interval, each.blocks) for each in case.metrics}


@pytest.fixture
def world(personas: Personas, data_dir: Path, tmp_path: Path) -> RepeatedWorld:
    return RepeatedWorld.make(personas, tmp_path)


def test_a_run_comparison_does_not_change_with_later_measurements(world: RepeatedWorld) -> None:
    run = world.measure_against(1, 850)
    before = world.compared(1, run)
    world.measure_often(0)
    world.measure_often(1)
    assert all(len(point.values) == MOST_VALUES for point in Point.objects.all())
    assert world.compared(1, run) == before
    assert before["requests.rate"][2] == 6


def test_a_commit_is_paired_with_a_baseline_of_many_runs(world: RepeatedWorld) -> None:
    world.measure_against(1, 850)
    world.measure_often(0)
    run = world.measure_against(2, 1200)
    changes = world.compared(2)
    assert changes["requests.rate"][2] == 6
    assert changes["requests.rate"][0] == pytest.approx(0.2, abs=0.02)
    assert world.compared(2, run) == changes


def test_points_are_used_after_trials_were_pruned(world: RepeatedWorld) -> None:
    world.measure_against(1, 850)
    world.measure_often(0)
    run = world.measure_against(2, 1200)
    before = world.compared(2, run)
    world.prune()
    assert not Trial.objects.exists()
    assert world.compared(2, run) == before


def test_values_of_other_runs_are_not_read(world: RepeatedWorld) -> None:
    run = world.measure_against(1, 850)
    world.measure_often(0)
    world.measure_often(1)
    sides = Side(commit=world.commits[0]), Side(commit=world.commits[1])
    pair = load_run_points(Benchmark.objects.get(), sides, run, metrics=None, filters=(None, None))
    for side in pair:
        ((measured,),) = (likenesses.values() for likenesses in side.values())
        assert {len(values.values) for values in measured.metrics.values()} == {6}
    whole = load_points(Benchmark.objects.get(), sides[0])
    ((measured,),) = (likenesses.values() for likenesses in whole.values())
    assert {len(values.values) for values in measured.metrics.values()} == {MOST_VALUES}
