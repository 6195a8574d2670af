"""Readings and points: each trial is stored once, also with concurrent writers."""

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction

from orchestrator.benchmarks.models import Case, Commit
from orchestrator.core.ids import new_id
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.recording import Ids, MeasuredRow
from orchestrator.results.models import Point, Reading, Series
from orchestrator.stats.estimates import estimate
from orchestrator.stats.rollup import compute_bands
from tests.support.factories import Personas, record, store_cases
from tests.support.world import World

AT = datetime(2026, 5, 1, tzinfo=UTC)
VALUES = [101.0, 99.5, 100.25, 98.0, 104.0, 100.0]


class RecordingWorld(World):
    """With results of the only case for the first commit."""

    @cached_property
    def commit(self) -> Commit:
        return self.commits[0]

    @cached_property
    def case(self) -> Case:
        return store_cases(self.benchmark.definitions.get())[0]

    def measured(self, readings: Mapping[str, float], **changes: Any) -> MeasuredRow:
        values = {
            "id": new_id(),
            "benchmark": self.benchmark.pk,
            "case": self.case.pk,
            "host": self.host.pk,
            "commit": self.commit.pk,
            "at": AT,
            "validity": "valid",
            "readings": readings,
            **changes,
        }
        return MeasuredRow(**values)


@pytest.fixture
def world(personas: Personas, data_dir: Path, tmp_path: Path) -> RecordingWorld:
    world = RecordingWorld.make(personas, tmp_path)
    # Read here, not in the threads of a test.
    assert (world.case.benchmark, world.commit.project) == (world.benchmark, world.project)
    return world


def store(*rows: MeasuredRow) -> int:
    with transaction.atomic():
        return record(rows)


def test_a_point_does_not_depend_on_the_order_of_trials(world: RecordingWorld) -> None:
    rows = [
        world.measured(
            {"requests.rate": value},
            block=place,
            place=2 * place,
            run=place // 2,
            at=AT + timedelta(seconds=place),
        )
        for place, value in enumerate(VALUES, start=1)
    ]
    assert [store(rows[0]), store(*rows[1:4]), store(*rows[4:])] == [1, 3, 2]
    point = Point.objects.get()
    # The runs are 0, 1, 1, 2, 2, 3.
    runs = [VALUES[:1], VALUES[1:3], VALUES[3:5], VALUES[5:]]
    wanted = estimate(runs, "mean")
    assert wanted is not None
    bands = compute_bands([point.run_count], [point.mean], [point.mean_log], [point.m2_log])

    assert (point.trials, point.suspect, point.invalid) == (6, 0, 0)
    assert (point.values, point.blocks) == (VALUES, [1, 2, 3, 4, 5, 6])
    assert point.places == [2, 4, 6, 8, 10, 12]
    assert (point.runs, point.run_count) == ([0, 1, 1, 2, 2, 3], 4)
    assert point.at == AT + timedelta(seconds=6)
    assert point.position == world.commit.position
    assert point.mean == pytest.approx(sum(VALUES) / 6, rel=1e-12)
    assert bands.value[0] == pytest.approx(wanted.value, rel=1e-12)
    assert (bands.low[0], bands.high[0]) == pytest.approx((wanted.low, wanted.high), rel=1e-9)


def test_a_repeated_result_changes_nothing(world: RecordingWorld) -> None:
    rows = [world.measured({"requests.rate": value}) for value in VALUES]
    assert store(*rows, rows[0]) == 6
    before = list(Point.objects.values())
    assert store(*rows[2:4]) == 0
    assert store(rows[5], world.measured({"requests.rate": 90.0})) == 1
    assert before[0]["trials"] == 6
    assert Point.objects.get().trials == 7
    assert Reading.objects.count() == 7


def test_invalid_results_are_only_counted(world: RecordingWorld) -> None:
    store(world.measured({"requests.rate": 5.0}, validity="invalid"))
    alone = Point.objects.get()
    assert (alone.trials, alone.invalid, alone.mean, alone.values) == (0, 1, None, [])
    assert math.isnan(compute_bands([0], [None], [None], [None]).value[0])
    store(world.measured({"requests.rate": 100.0}, validity="suspect"))
    both = Point.objects.get()
    assert (both.trials, both.suspect, both.invalid, both.values) == (1, 1, 1, [100.0])
    assert math.exp(both.mean_log) == pytest.approx(100.0)


def test_zeros_have_a_mean_and_no_logarithm(world: RecordingWorld) -> None:
    store(world.measured({"requests.errors": 4.0}))
    store(world.measured({"requests.errors": 0.0}))
    store(world.measured({"requests.errors": 2.0}))
    point = Point.objects.get()
    bands = compute_bands([point.run_count], [point.mean], [point.mean_log], [point.m2_log])
    assert (point.mean, point.mean_log, point.m2_log) == (2.0, None, None)
    assert bands.value[0] == 2.0
    assert math.isnan(bands.low[0])


def test_other_hosts_epochs_configurations_and_metrics_are_separate_points(
    world: RecordingWorld,
) -> None:
    store(
        world.measured({"requests.rate": 1.0, "latency.p50": 0.5}),
        world.measured({"requests.rate": 2.0}, epoch=1),
        world.measured({"requests.rate": 3.0}, configuration=-7),
    )
    keys = {
        (each.series.metric.key, each.epoch, each.configuration) for each in Point.objects.all()
    }
    assert keys == {
        ("requests.rate", 0, 0), ("latency.p50", 0, 0), ("requests.rate", 1, 0),
        ("requests.rate", 0, -7),
    }  # fmt: skip
    assert Series.objects.count() == 2


def test_readings_belong_to_a_trial_and_never_change(world: RecordingWorld) -> None:
    row = world.measured({"requests.rate": 1.5, "latency.p50": 0.25})
    store(row)
    assert load_values([row.id, new_id()]) == {row.id: {"requests.rate": 1.5, "latency.p50": 0.25}}
    assert load_values([row.id], ["latency.p50"]) == {row.id: {"latency.p50": 0.25}}
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        Reading.objects.filter(pk=row.id).update(validity="invalid")


def test_points_move_with_their_commits(world: RecordingWorld) -> None:
    store(world.measured({"requests.rate": 1.0}))
    Commit.objects.filter(pk=world.commit.pk).update(position=77)
    assert Point.objects.get().position == 77
    Commit.objects.filter(pk=world.commit.pk).update(position=None)
    assert Point.objects.get().position is None


@pytest.mark.django_db(transaction=True)
def test_concurrent_writes_to_a_new_point_lose_nothing(world: RecordingWorld) -> None:
    rows = [world.measured({"requests.rate": 100.0 + n, "latency.p50": 1.0}) for n in range(120)]

    def write(number: int) -> int:
        try:
            mine = rows[number::4]
            repeated = rows[(number + 1) % 4 :: 4][:10]
            return sum(store(*mine[k : k + 5], *repeated[k : k + 5]) for k in range(0, 30, 5))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(write, range(4))) == 120
    rate = Point.objects.get(series__metric__key="requests.rate")
    assert rate.trials == 120
    assert sorted(rate.values) == [100.0 + n for n in range(120)]
    assert rate.mean == pytest.approx(159.5, rel=1e-12)
    assert len(load_values(row.id for row in rows)) == 120


@pytest.mark.django_db(transaction=True)
def test_ids_are_shared_when_they_are_committed(world: RecordingWorld) -> None:
    ids = Ids()
    row = world.measured({"requests.rate": 1.0, "fresh.metric": 2.0})
    with transaction.atomic():
        record([row], ids)
        assert ids.series == {}
        transaction.set_rollback(True)
    assert ids.series == {}

    # Others made them meanwhile, and they got other ids.
    store(world.measured({"fresh.metric": 2.0}))
    with transaction.atomic():
        assert record([row], ids) == 1
    stored = Series.objects.values_list("case", "host", "metric", "pk")
    assert ids.series == {tuple(key): pk for *key, pk in stored}


@pytest.mark.django_db(transaction=True)
def test_shared_ids_exclude_those_of_a_failed_writer(world: RecordingWorld) -> None:
    ids = Ids()

    def write(number: int) -> None:
        try:
            with transaction.atomic():
                rows = [world.measured({f"fresh.{number // 4}.{n}": 1.0}) for n in range(5)]
                assert record(rows, ids) == 5
                transaction.set_rollback(number % 4 == 0)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(160)))
    assert Reading.objects.count() == 5 * 120
    assert sorted(Point.objects.values_list("trials", flat=True)) == [3] * 200


def test_the_chart_of_a_series_is_an_index_only_scan(world: RecordingWorld) -> None:
    """Whatever the size of the table, no more than the index is touched for a history."""
    with connection.cursor() as cursor:
        # What is left is an index alone, if the columns are all in one; not how large the table is.
        for kind in ("seqscan", "bitmapscan", "indexscan"):
            cursor.execute(f"SET LOCAL enable_{kind} = off")
        cursor.execute(
            "EXPLAIN SELECT commit_id, position, at, epoch, configuration, trials, suspect, "
            "invalid, mean, "
            "mean_log, m2_log FROM results_point WHERE series_id = 1 AND position > 5 "
            "ORDER BY position"
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Only Scan using point_along_commits" in plan
