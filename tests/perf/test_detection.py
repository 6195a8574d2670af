"""The benchmark of detection: its parts, and that it still works in its shortest form."""

from itertools import pairwise

import numpy as np
import pytest

from perf.detection.__main__ import NAME, judge, load_kept_parts
from perf.detection.detectors import _detect_with_perfherder, _detect_with_threshold
from perf.detection.parts import PARTS
from perf.detection.scores import Score, compute_score
from perf.detection.synthetic import APART, make_planted
from perf.harness import report
from tests.support.benchmarks import run_benchmark


@pytest.mark.parametrize(
    ("expected", "alarms", "score"),
    [
        ([10], [10], Score(1, 0, 0)),
        ([10], [12], Score(1, 0, 0)),
        ([10], [13], Score(0, 1, 1)),
        ([10], [9, 10, 11], Score(1, 2, 0)),
        ([10, 12], [11], Score(1, 0, 1)),
        ([], [], Score()),
    ],
)
def test_an_alarm_within_two_points_counts_once(expected, alarms, score):
    assert compute_score(expected, alarms) == score


def test_f1_is_computed_from_summed_counts():
    total = Score(3, 1, 0) + Score(0, 0, 2)
    assert (total.precision, total.recall) == (0.75, 0.6)
    assert total.f1 == pytest.approx(2 / 3)


def test_planted_steps_keep_a_distance_from_each_other_and_the_ends():
    rng = np.random.default_rng(1)
    for number in range(50):
        series = make_planted(rng, number)
        edges = [0, *series.changes, len(series.values)]
        assert all(b - a >= APART for a, b in pairwise(edges))


def test_alternative_detectors_find_an_obvious_step():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(100, 1, 40), rng.normal(120, 1, 40)]).tolist()
    assert _detect_with_perfherder(values) == [40]
    assert _detect_with_threshold(values) == [40]


@pytest.mark.engine
@pytest.mark.slow
def test_detection_benchmark_reports_a_value_for_every_target():
    answer = run_benchmark("detection", timeout_s=400)
    assert answer["measured"].keys() == answer["wanted"].keys()
    assert answer["measured"].keys() == {key for part in PARTS.values() for key in part.wanted}


def test_a_part_is_kept_while_its_targets_stay_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    runs = {"measured": dict.fromkeys(PARTS["runs"].wanted, 0.0)}
    outdated = {"measured": {"a_target_of_last_year": 0.0}}
    report.keep(NAME, {"parts": {"runs": runs, "changes": outdated, "gone": runs}})
    assert load_kept_parts() == {"runs": runs}
    report.keep(NAME, {"measured": {"no_parts": 1.0}})
    assert load_kept_parts() == {}


def test_the_last_line_has_the_targets_of_the_measured_parts():
    answer = judge({"runs": {"measured": dict.fromkeys(PARTS["runs"].wanted, 1.0)}})
    assert answer["measured"].keys() == PARTS["runs"].wanted.keys()
    assert answer["met"] is False
