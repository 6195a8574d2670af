"""`manage.py detect` and `manage.py compare-trials`, typed for real where nothing else runs."""

import json
import os
import subprocess
import sys

import pytest

from devstack.places import CHECKOUT
from orchestrator.core.errors import InvalidRequestError
from orchestrator.measurements.number_files import parse_series_file, parse_trials_file

#: Nobody listens there: neither command may need PostgreSQL or Redis.
NOWHERE = {"DATABASE_URL": "postgresql://x@127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1/0"}
STEP = {"values": [100, 101, 99, 100] * 10 + [120, 121, 119, 120] * 10, "lower_is_better": True}
SLOWER = {"baseline": [10.0, 10.2, 9.9, 10.1, 10.0], "contender": [11.1, 11.2, 11.0, 11.2, 11.1]}


def typed(*words, given=None):
    return subprocess.run(
        [sys.executable, "manage.py", *map(str, words)],
        cwd=CHECKOUT,
        env={**os.environ, **NOWHERE},
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_detect_prints_the_changes_of_a_file(tmp_path):
    path = tmp_path / "series.json"
    path.write_text(json.dumps(STEP))
    done = typed("detect", path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    (change,) = answer["change_points"]
    assert change["index"] == 40
    assert change["kind"] == "alert"
    assert change["regressed"] is True
    assert change["low"] <= change["change"] <= change["high"]
    assert 0 <= change["p"] <= 1e-4
    assert (answer["outliers"], answer["unstable"]) == ([], False)


def test_detect_reads_standard_input():
    done = typed("detect", "-", given=json.dumps({**STEP, "lower_is_better": False}))
    (change,) = json.loads(done.stdout)["change_points"]
    assert change["regressed"] is False


@pytest.mark.parametrize("command", ["compare-trials", "compare_trials"])
def test_compare_trials_prints_the_comparison(tmp_path, command):
    path = tmp_path / "trials.json"
    path.write_text(json.dumps({**SLOWER, "better": "lower"}))
    done = typed(command, path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "regressed"
    assert answer["change"] == pytest.approx(0.107, abs=0.005)
    assert answer["interval"] == [answer["low"], answer["high"]]
    assert answer["p"] < 0.01
    assert (answer["blocks"], answer["needed_blocks"], answer["next_analysis"]) == (5, None, None)


@pytest.mark.parametrize(
    ("command", "given", "message"),
    [
        ("detect", "nonsense", "line 1, column 1: not JSON"),
        ("detect", '{"values": [1, "2"]}', "values[1]: expected a number"),
        ("compare-trials", '{"baseline": [1]}', "contender: it is missing"),
    ],
)
def test_a_file_error_is_reported_without_a_traceback(command, given, message):
    done = typed(command, "-", given=given)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_missing_file_is_named():
    done = typed("detect", "/no/such/file.json")
    assert done.returncode == 1
    assert "/no/such/file.json: it cannot be read: No such file" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "values: it is missing"),
        ("3", "the file: expected an object"),
        ('{"values": 3}', "values: expected a list, got a number"),
        ('{"values": [true]}', "values\\[0\\]: expected a number"),
        ('{"values": [], "lower_is_better": "yes"}', "lower_is_better: expected true or false"),
        ('{"values": [1], "breaks": ["x"]}', "breaks\\[0\\]: expected an index"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_an_invalid_series_is_refused_with_its_position(text, message):
    with pytest.raises(InvalidRequestError, match=message):
        parse_series_file(text)


def test_a_plain_list_is_a_series_with_gaps():
    series = parse_series_file("[1, null, NaN, 1e999, 3]")
    assert series.values[:2] == [1.0, None]
    assert len(series.values) == 5
    assert series.lower_is_better


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"baseline": [1], "contender": [1, 2]}', "contender: 2 trials, but 1"),
        ('{"baseline": [1], "contender": [-1]}', "contender\\[0\\]: -1: expected a finite"),
        ('{"baseline": [NaN], "contender": [1]}', "baseline\\[0\\]"),
        ('{"pairs": [[1, 2], [3]]}', "pairs\\[1\\]: expected \\[baseline, contender\\]"),
        ('{"pairs": [], "margin": 3}', "margin: expected a share"),
        ('{"pairs": [], "better": "up"}', "better: 'up'"),
        ('{"pairs": [], "metric": "speed of it"}', "metric: 'speed of it' is not a metric"),
        ('{"metrics": {}}', "metrics: there is none"),
        ('{"metrics": {"a": {"pairs": [1]}}}', "metrics.a.pairs\\[0\\]"),
    ],
)
def test_invalid_trials_are_refused_with_their_position(text, message):
    with pytest.raises(InvalidRequestError, match=message):
        parse_trials_file(text)


def test_better_and_margin_follow_from_a_metric_of_the_registry():
    trials = parse_trials_file('{"pairs": [[1, 2]], "metric": "latency.p99"}')[""]
    assert (trials.better, trials.margin) == ("lower", 0.05)
    trials = parse_trials_file('{"metrics": {"requests.rate": {"pairs": [[1, null]]}}}')[
        "requests.rate"
    ]
    assert (trials.better, trials.margin, trials.contender) == ("higher", 0.03, [None])


def test_values_of_the_file_take_precedence():
    text = '{"pairs": [[1, 2]], "metric": "latency.p99", "lower_is_better": false, "margin": 0.2}'
    trials = parse_trials_file(text)[""]
    assert (trials.better, trials.margin) == ("higher", 0.2)


def test_the_worst_verdict_of_several_metrics_comes_first():
    text = json.dumps({"metrics": {"latency.p50": SLOWER, "latency.p99": {"pairs": [[1, 1]]}}})
    done = typed("compare-trials", "-", given=text)
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "regressed"
    assert answer["metrics"]["latency.p99"]["verdict"] == "inconclusive"
    assert answer["metrics"]["latency.p99"]["next_analysis"] == 5


def test_values_without_a_ratio_that_a_float_can_hold_are_refused():
    text = json.dumps({"pairs": [[1e-300, 1e300]] * 6})
    done = typed("compare-trials", "-", given=text)
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
