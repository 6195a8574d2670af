"""Real reports of wrk 4.1.0, recorded against real servers in every kind of trouble."""

import json
import re

import pytest

from agents.hostagent.paths import build_stdout_path
from orchestrator.loadtools.metrics import find_metric
from orchestrator.loadtools.model import ToolOutputError
from orchestrator.loadtools.registry import TOOLS

from .record import SCENARIOS, recorded
from .running import OF_A_BUSY_MACHINE, build_result, read_rows

VERSION = "wrk-4.1.0"
WRK = TOOLS["wrk"]
READABLE = sorted(set(SCENARIOS[VERSION]) - {"refused"})


def read(name, folder):
    spec, left = recorded(VERSION, name, folder)
    rows = read_rows("wrk", left)
    return WRK.parse(spec, left.out.read_bytes(), rows, build_result(left))


def codes(reading):
    return set(reading.validity.codes) - OF_A_BUSY_MACHINE


@pytest.mark.parametrize("name", READABLE)
def test_there_are_as_many_latencies_as_answers_on_time(name, tmp_path):
    _, left = recorded(VERSION, name, tmp_path)
    report = json.loads(left.out.read_bytes())
    match = re.search(r"(\d+) requests in ", build_stdout_path(left.out).read_text())
    rows = read_rows("wrk", left)
    assert rows["all"]["n"] == int(match[1]) - report["errors"]["timeout"]
    kept = json.loads(left.out.read_bytes())
    assert kept["added"] == sum(report["count"]) - rows["all"]["n"]
    assert not {"value_us", "count"} & set(kept)


def test_wrk_adds_latencies_for_a_freezing_server(tmp_path):
    _, left = recorded(VERSION, "frozen", tmp_path)
    read_rows("wrk", left)
    assert json.loads(left.out.read_bytes())["added"] > 1_000


@pytest.mark.parametrize("name", READABLE)
def test_every_value_has_a_metric_and_is_finite(name, tmp_path):
    readings = read(name, tmp_path).readings
    assert all(map(find_metric, readings))
    assert all(isinstance(value, float) and value >= 0 for value in readings.values())


@pytest.mark.parametrize(
    ("name", "errors", "found"),
    [
        ("plain", set(), set()),
        ("tls", set(), set()),
        ("closing", set(), set()),
        ("frozen", set(), set()),
        ("mixed", set(), {"http_errors"}),
        ("status500", set(), {"http_errors"}),
        ("dropped", {"broken"}, {"transport_errors"}),
        ("late", {"timeout"}, {"transport_errors"}),
        ("never", set(), {"no_answers"}),
    ],
)
def test_kinds_of_failure_are_distinguished(name, errors, found, tmp_path):
    reading = read(name, tmp_path)
    assert set(reading.errors) == errors
    assert codes(reading) == found


def test_bad_responses_are_only_counted(tmp_path):
    reading = read("mixed", tmp_path)
    report = json.loads((tmp_path / "tool.json").read_bytes())
    good = report["requests"] - report["errors"]["status"]
    assert reading.readings["requests.ok"] == good
    assert reading.readings["requests.rate"] == good / (report["duration_us"] / 1e6)
    assert not [key for key in reading.readings if key.startswith("latency.")]
    (reason,) = (each for each in reading.validity.reasons if each.code == "http_errors")
    assert str(report["errors"]["status"]) in reason.message
    assert "wrk does not report which" in reason.message


def test_the_rate_uses_the_real_duration(tmp_path):
    reading = read("plain", tmp_path)
    match = re.search(r"Requests/sec: +([0-9.]+)", (tmp_path / "tool.stdout").read_text())
    assert reading.readings["requests.rate"] == pytest.approx(float(match[1]), abs=0.01)


def test_a_report_of_other_requests_is_detected(tmp_path):
    spec, left = recorded(VERSION, "frozen", tmp_path)
    report = json.loads(left.out.read_bytes())
    left.out.write_text(json.dumps({**report, "requests": report["requests"] - 1}))
    rows = read_rows("wrk", left)
    reading = WRK.parse(spec, left.out.read_bytes(), rows, build_result(left))
    assert "parse_mismatch" in codes(reading)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (b"", "not JSON"),
        (b'{"requests": 5', "not JSON"),
        (b"[]", "wrk's report is a list, expected an object"),
        (b"{}", "KeyError: 'errors'"),
        (b'{"errors": {"status": "x"}}', "ValueError"),
    ],
)
def test_invalid_output_is_refused_with_a_reason(report, message, tmp_path):
    spec, left = recorded(VERSION, "plain", tmp_path)
    rows = read_rows("wrk", left)
    with pytest.raises(ToolOutputError, match=message):
        WRK.parse(spec, report, rows, build_result(left))
