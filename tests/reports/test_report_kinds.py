"""A number of a report combines only trials that were measured in the same way: the newest."""

from datetime import timedelta
from typing import Any

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import HostChange, HostSnapshot
from orchestrator.histories.histories import load_case_history
from orchestrator.measurements.incoming import ResultIn
from orchestrator.measurements.ingest import ingest_results
from orchestrator.reports.pivot_model import Cell
from orchestrator.reports.report_builder import Report, build_report
from orchestrator.reports.report_spec import from_data
from orchestrator.results.models import PointHistogram
from orchestrator.runs.models import Run, Trial
from orchestrator.stats.histogram import Histogram
from tests.support.factories import finish_run
from tests.support.world import World


def measure(world: World, rate: float, **changes: Any) -> Run:
    """A run of the first two commits, five rounds."""
    return finish_run(world.queue_run(0, 1, rounds=5, **changes), [1000, rate])


def build(world: World) -> Report:
    columns = [
        {"metric": "requests.rate", "title": "Rate"},
        {"metric": "latency.p99", "statistic": "merged", "title": "p99", "unit": "ms"},
    ]
    table = {"rows": ["connections"], "columns": columns}
    data = {"version": 1, "title": "T", "benchmark": "hello", "tables": [table]}
    return build_report(world.alice, from_data(data))


def read_rate(report: Report) -> Cell:
    ((row,),) = (table.rows for table in report.tables)
    return row.cells[0]


def change_host(world: World) -> None:
    snapshot = HostSnapshot.objects.create(host=world.host, facts={}, fingerprint="g" * 64)
    HostChange.objects.create(
        host=world.host, snapshot=snapshot, changed={"kernel": ["6.1", "6.6"]}, at=snapshot.taken_at
    )


def test_an_earlier_epoch_of_the_host_is_left_out(world: World) -> None:
    measure(world, 500)
    assert read_rate(build(world)).value == pytest.approx(500, rel=0.01)
    change_host(world)
    newer = measure(world, 800)
    slow = Histogram.from_counts([5_000_000], [100_000])
    PointHistogram.objects.create(
        case=world.benchmark.cases.get(), host=world.host, commit=world.commits[1],
        definition=newer.definition, kind="ok", encoded=slow.encode(), count=100_000, trials=5,
        suspect=0, excluded=0,
    )  # fmt: skip
    report = build(world)
    cell = read_rate(report)
    assert (cell.trials, cell.runs) == (5, 1)
    assert cell.value == pytest.approx(800, rel=0.01)
    # Distributions of removed trials may be of the earlier epoch.
    assert report.tables[0].rows[0].cells[1].value < 1000
    (note,) = report.notes
    assert note.startswith("5 trials of earlier versions of the definition or of a tool")


def test_another_version_of_the_load_tool_is_left_out(world: World) -> None:
    measure(world, 500)
    newer = measure(world, 800)
    provenance = {"argv": ["oha"], "tool": {"name": "oha", "version": "2.0"}}
    Trial.objects.filter(job__run=newer).update(provenance=provenance)
    cell = read_rate(build(world))
    assert (cell.trials, cell.value) == (5, pytest.approx(800, rel=0.01))
    assert len(build(world).notes) == 1


def test_failed_trials_of_the_newest_kind_are_counted(world: World) -> None:
    run = measure(world, 800)
    failed = Trial.objects.filter(job__run=run, variant__position=1, round=1)
    failed.update(state="failed", validity="", provenance={}, reasons=["server_died"])
    report = build(world)
    assert read_rate(report).trials == 4
    assert report.outcomes == {"valid": 4, "failed": 1}
    assert report.notes == ()


def test_runs_of_one_kind_are_combined_as_in_the_history(world: World) -> None:
    for rate in (780, 800, 830):
        measure(world, rate)
    cell = read_rate(build(world))
    assert (cell.trials, cell.runs) == (15, 3)
    history = load_case_history(
        world.alice,
        benchmark=world.benchmark,
        metric_key="requests.rate",
        case=world.benchmark.cases.get(),
        host=world.host,
    )
    point = history.points[-1]
    assert point.runs == 3
    assert cell.value == pytest.approx(point.value)
    assert point.interval is not None
    assert (cell.low, cell.high) == pytest.approx(point.interval)


def test_imported_results_are_not_combined_with_trials(world: World) -> None:
    measure(world, 800)
    case = world.benchmark.cases.get()
    result = ResultIn(
        benchmark="hello",
        commit=world.shas[1],
        host=world.host.name,
        parameters=case.parameters,
        id="build-1",
        at=utc_now() - timedelta(minutes=1),
        metrics={"requests.rate": 100.0},
    )
    ingest_results(member=world.alice, results=[result])
    report = build(world)
    cell = read_rate(report)
    assert (cell.trials, cell.value) == (5, pytest.approx(800, rel=0.01))
    assert report.notes[0].startswith("1 trial of")
