"""How often change points are wrong or missed, on made histories with fixed seeds."""

import numpy as np

from orchestrator.stats.changes import find_changes
from perf.detection.labelled import load_labelled
from perf.detection.scores import Score, compute_score
from perf.detection.synthetic import make_quiet, make_step


def indices(values):
    return [change.index for change in find_changes(values).points]


def test_histories_without_a_change_rarely_raise_an_alert():
    rng = np.random.default_rng(1)
    histories = [find_changes(make_quiet(rng, number).values) for number in range(300)]
    alerting = [each for each in histories if any(c.kind == "alert" for c in each.points)]
    assert len(alerting) <= 3


def test_white_noise_gives_at_most_two_alerts_in_a_thousand_points():
    rng = np.random.default_rng(2)
    alarms = sum(
        len(indices((100 * np.exp(rng.normal(0, 0.03, 200))).tolist())) for _ in range(200)
    )
    assert alarms <= 2 * 200 * 200 / 1000


def test_steps_of_five_percent_in_noise_of_one_are_found():
    rng = np.random.default_rng(3)
    total = Score()
    for _ in range(100):
        log = rng.normal(0, 0.01, 200)
        steps = [50, 100, 150]
        for at in steps:
            log[at:] += rng.choice([-1, 1]) * np.log1p(0.05)
        total += compute_score(steps, indices((100 * np.exp(log)).tolist()))
    assert total.f1 >= 0.95


def test_a_step_of_five_percent_is_found_after_three_commits():
    rng = np.random.default_rng(4)
    detections = 0
    for _ in range(100):
        series = make_step(rng, noise=0.02, step=0.05, after=6)
        detections += any(
            compute_score(series.changes, indices(series.values[:end])).found
            for end in range(series.changes[0] + 3, series.changes[0] + 7)
        )
    assert detections >= 0.95 * 100


def test_most_labelled_real_changes_are_found():
    scores = [compute_score(series.changes, indices(series.values)) for series in load_labelled()]
    assert sum(scores, Score()).f1 >= 0.9
