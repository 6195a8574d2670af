"""Change points are found where points land, and revised as more come."""

import math
from pathlib import Path
from statistics import pvariance

import pytest
from django.db import transaction

from orchestrator.benchmarks.models import Commit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, NotFoundError, PermissionRefusedError
from orchestrator.regressions import segmentation as change_search
from orchestrator.regressions.change_points import (
    dismiss,
    load_series_baselines,
    load_series_changes,
    remove_baseline,
    store_baseline,
)
from orchestrator.regressions.main_line import load_main_line
from orchestrator.regressions.segmentation import detect_next_series
from orchestrator.results.models import (
    Calibration,
    ChangedSeries,
    ChangePoint,
    ChangeState,
    SeriesDetection,
)
from tests.support.commit_lines import Line, make_line
from tests.support.factories import (
    MIXED_LOOPS,
    Personas,
    make_definition,
    make_run,
    store_cases,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(personas: Personas, tmp_path: Path) -> Line:
    return make_line(personas.alice, tmp_path / "origin")


def test_a_step_is_found_where_it_is(line: Line) -> None:
    line.step(until=40, at=25, change=-0.08)
    (change_point,) = line.detect()
    assert (change_point.before, change_point.commit) == (line.commits[24], line.commits[25])
    assert change_point.regressed
    assert (change_point.kind, change_point.state) == ("alert", "open")
    assert change_point.low < -0.07
    assert change_point.high > -0.09
    assert change_point.recent
    assert not change_point.final
    look = SeriesDetection.objects.get(pk=change_point.series_id)
    assert look.points == 40
    assert not look.unstable


def test_a_calibrated_host_has_at_least_its_calibrated_noise(line: Line) -> None:
    """The points of this series look quiet, but trials of the host differ by 20 %."""
    run = make_run(line.member, [line.commits[0].sha])
    calibration = {
        "host": line.host,
        "benchmark": line.benchmark,
        "commit": line.commits[0],
        "readings": {line.cases[0].key: {"requests.rate": {"sigma": 0.2 * 2**0.5}}},
        "at": utc_now(),
    }
    Calibration.objects.create(run=run, epoch=0, **calibration)
    line.step(until=40, at=25, change=-0.08)
    assert line.detect() == []
    Calibration.objects.all().delete()
    Calibration.objects.create(run=run, epoch=1, **calibration)
    line.measure({40: 920.0}, seed=2)
    assert len(line.detect()) == 1, "that of another epoch does not count"


def test_the_precision_of_a_point_is_that_of_its_trials(line: Line) -> None:
    """They are of one run, so the sums of the point, over its runs, say nothing about it."""
    line.measure({0: 1000.0})
    stored = line.series().points.get()
    logs = [math.log(value) for value in stored.values]
    (point,) = load_main_line(line.series().pk, most=10)
    assert (stored.run_count, stored.m2_log) == (1, 0)
    assert point.squares == pytest.approx(pvariance(logs) * len(logs))


def test_the_smallest_change_follows_the_margin(line: Line) -> None:
    """The margin of p99 is 5 %, and that of the rate 3 %."""
    for metric, certain in (("requests.rate", 1), ("latency.p99", 0)):
        values = {place: 1.027 if place >= 20 else 1.0 for place in range(40)}
        line.measure(values, metric=metric, seed=3)
        series = line.series(metric=metric)
        change_search._detect_in_series(series, 250, since=None, is_old=False)
        assert series.change_points.count() == certain, metric


def test_an_improvement_is_a_change_point(line: Line) -> None:
    line.step(until=40, at=25, change=0.08)
    (change_point,) = line.detect()
    assert not change_point.regressed


def test_noise_has_no_change_point(line: Line) -> None:
    line.step(until=60, at=100, change=0.0)
    assert line.detect() == []


def test_only_primary_metrics_are_analysed(line: Line) -> None:
    line.step(until=40, at=100, change=0.0)
    line.step(until=40, at=25, change=0.5, metric="latency.p99")
    assert line.detect() == []
    assert not ChangedSeries.objects.exists()


def test_a_metric_of_a_script_is_analysed_if_its_case_has_no_primary_metric(line: Line) -> None:
    line.step(until=40, at=25, change=0.5, metric="script.parse_s")
    (change_point,) = line.detect()
    assert change_point.regressed


def test_a_custom_metric_next_to_primary_ones_is_analysed_if_it_has_a_direction(
    line: Line,
) -> None:
    line.step(until=40, at=100, change=0.0)
    line.step(until=40, at=25, change=0.5, metric="script.parse_s")
    line.step(until=40, at=25, change=0.5, metric="script.retries_count")
    assert [each.series.metric.key for each in line.detect()] == ["script.parse_s"]


def test_the_metrics_of_its_own_loop_are_analysed(line: Line) -> None:
    definition = make_definition(line.member, line.project, source=MIXED_LOOPS)
    line.cases.extend(each for each in store_cases(definition) if each not in line.cases)
    loops = {each.parameters.get("loop"): number for number, each in enumerate(line.cases)}
    for loop in ("closed", "open"):
        for metric in ("requests.rate", "latency.p99"):
            line.step(until=40, at=25, change=0.5, metric=metric, case=loops[loop])
    found = {
        (each.series.case.parameters["loop"], each.series.metric.key) for each in line.detect()
    }
    assert found == {("closed", "requests.rate"), ("open", "latency.p99")}


def test_a_change_point_moves_with_new_points_and_keeps_its_row(line: Line) -> None:
    line.step(until=41, at=25, change=-0.08, every=4)
    (change_point,) = line.detect()
    assert (change_point.before, change_point.commit) == (line.commits[24], line.commits[28])
    line.measure({25: 920, 26: 920, 27: 920}, seed=2)
    (moved,) = line.detect()
    assert moved.pk == change_point.pk
    assert (moved.before, moved.commit) == (line.commits[24], line.commits[25])
    assert any("moved from" in each["text"] for each in moved.revisions)


def test_a_change_point_that_is_no_longer_detected_is_superseded(line: Line) -> None:
    line.step(until=30, at=25, change=-0.08)
    (change_point,) = line.detect()
    # The five points were a bad day: all that follows is as before.
    line.measure(dict.fromkeys(range(25, 30), 1000 * 1.085), seed=3)
    line.measure(dict.fromkeys(range(30, 60), 1000.0), seed=4)
    change_point.refresh_from_db()
    states = {each.state for each in line.detect()}
    assert states == {ChangeState.SUPERSEDED}
    assert load_series_changes([change_point.series_id]) == {}


def test_a_change_of_the_host_is_not_a_change_point(line: Line) -> None:
    line.measure(dict.fromkeys(range(25), 1000.0))
    line.measure(dict.fromkeys(range(25, 50), 900.0), epoch=1, seed=2)
    assert line.detect() == []


def test_a_changed_configuration_is_not_a_change_point(line: Line) -> None:
    line.measure(dict.fromkeys(range(25), 1000.0), configuration=1)
    line.measure(dict.fromkeys(range(25, 50), 900.0), configuration=2, seed=2)
    assert line.detect() == []


def test_commits_measured_in_two_epochs_bridge_a_break(line: Line) -> None:
    line.step(until=40, at=25, change=-0.08)
    line.measure({24: 700.0, 25: 640.0}, epoch=1, seed=5)
    line.measure(dict.fromkeys((41, 43), 700.0), epoch=1, seed=6)
    line.measure(dict.fromkeys((42, 44, 45), 920.0), seed=7)
    (change_point,) = line.detect()
    assert change_point.commit == line.commits[25]


def test_a_single_spike_is_an_outlier_and_not_a_change_point(line: Line) -> None:
    line.measure({place: 800.0 if place == 20 else 1000.0 for place in range(40)})
    assert line.detect() == []
    look = SeriesDetection.objects.get(pk=line.series().pk)
    assert look.outliers == [line.commits[20].pk]


def test_merged_commits_are_not_on_the_main_line(line: Line) -> None:
    Commit.objects.filter(pk__in=[each.pk for each in line.commits[10:20]]).update(mainline=False)
    line.measure({place: 500.0 if 10 <= place < 20 else 1000.0 for place in range(40)})
    assert line.detect() == []


def test_an_old_change_is_shown_and_raises_no_alert(line: Line) -> None:
    line.step(until=60, at=12, change=-0.08)
    (change_point,) = line.detect()
    assert not change_point.recent
    assert change_point.final
    assert change_point.message.startswith("not confirmed: it is before")


def test_change_points_before_the_analysed_window_are_kept(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.step(until=40, at=12, change=-0.08)
    (change_point,) = line.detect()
    monkeypatch.setattr(change_search, "POINTS_THEN", 25)
    line.measure({40: 920.0}, seed=2)
    (still,) = line.detect()
    assert (still.pk, still.state, still.seen) == (change_point.pk, "open", True)
    # A new beginning is looked for in all of the history.
    store_baseline(member=line.member, commit=line.commits[12], reason="new", series=line.series())
    assert {each.state for each in line.detect()} == {"superseded"}


def test_change_points_dropped_by_a_force_push_are_superseded(line: Line) -> None:
    line.step(until=40, at=25, change=-0.08)
    line.detect()
    dropped = [each.pk for each in line.commits[25:40]]
    Commit.objects.filter(pk__in=dropped).update(position=None, mainline=False)
    ChangedSeries.objects.create(series=[line.series().pk])
    assert {each.state for each in line.detect()} == {"superseded"}


def test_a_detection_request_is_kept_until_its_result_is_stored(line: Line) -> None:
    line.step(until=40, at=25, change=-0.08)

    with transaction.atomic():
        assert detect_next_series() > 0
        # As if the worker had died before the end of its transaction.
        transaction.set_rollback(True)
    assert ChangedSeries.objects.exists()
    assert not ChangePoint.objects.exists()
    assert len(line.detect()) == 1
    assert not ChangedSeries.objects.exists()


def test_detecting_twice_changes_nothing(line: Line) -> None:
    line.step(until=40, at=25, change=-0.08)
    (change_point,) = line.detect()
    ChangedSeries.objects.create(series=[line.series().pk])
    (again,) = line.detect()
    assert (again.pk, again.revisions) == (change_point.pk, change_point.revisions)


def test_points_before_a_baseline_are_not_analysed(line: Line) -> None:
    line.step(until=40, at=25, change=-0.08)
    (change_point,) = line.detect()
    made = store_baseline(
        member=line.member, commit=line.commits[25], reason="meant so", series=line.series()
    )
    line.detect()
    assert load_series_changes([change_point.series_id]) == {}
    assert load_series_baselines([line.series()])[change_point.series_id].commit == line.commits[25]
    remove_baseline(member=line.member, baseline_id=made.pk)
    line.detect()
    assert len(load_series_changes([change_point.series_id])[change_point.series_id]) == 1


def test_a_baseline_of_a_case_covers_all_its_series(line: Line) -> None:
    for metric in ("requests.rate", "latency.p50"):
        line.step(until=40, at=25, change=-0.08, metric=metric)
    assert len(line.detect()) == 2
    store_baseline(member=line.member, commit=line.commits[25], reason="new", case=line.cases[0])
    line.detect()
    assert load_series_changes([line.series().pk, line.series(metric="latency.p50").pk]) == {}


def test_a_dismissed_change_point_stays_dismissed_with_new_points(line: Line) -> None:
    line.step(until=40, at=25, change=-0.08)
    (change_point,) = line.detect()
    dismiss(member=line.member, change_id=change_point.pk, reason="the test data grew")
    line.measure(dict.fromkeys(range(40, 45), 920.0), seed=2)
    (still,) = line.detect()
    assert (still.pk, still.state) == (change_point.pk, "dismissed")
    assert "the test data grew" in still.message


def test_strangers_and_viewers_cannot_change_change_points(line: Line, personas: Personas) -> None:
    line.step(until=40, at=25, change=-0.08)
    (change_point,) = line.detect()
    series, commit = line.series(), line.commits[25]
    with pytest.raises(PermissionRefusedError):
        dismiss(member=personas.bob, change_id=change_point.pk, reason="why not")
    with pytest.raises(NotFoundError):
        dismiss(member=personas.mallory, change_id=change_point.pk, reason="why not")
    with pytest.raises(NotFoundError):
        store_baseline(member=personas.mallory, commit=commit, reason="x", series=series)
    with pytest.raises(PermissionRefusedError):
        store_baseline(member=personas.bob, commit=commit, reason="x", series=series)
    with pytest.raises(InvalidRequestError, match="enter the reason"):
        dismiss(member=line.member, change_id=change_point.pk, reason=" ")


def test_a_failing_detection_request_is_postponed_and_stops_no_other(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = ChangedSeries.objects.create(series=[2**40])
    line.step(until=40, at=25, change=-0.08)
    revise = change_search.detect_changes

    def refuse(series: set[int], imported: set[int]) -> None:
        if 2**40 in series:
            raise ValueError("a point that nobody can read")
        revise(series, imported)

    monkeypatch.setattr(change_search, "detect_changes", refuse)
    assert detect_next_series() > 0
    [left] = ChangedSeries.objects.all()
    assert (left.pk, left.failures) == (poison.pk, 1)
    assert left.not_before is not None
    assert ChangePoint.objects.exists()
    assert detect_next_series() == 0, "it waits"
