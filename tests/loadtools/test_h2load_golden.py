"""Real reports and logs of h2load 1.52.0, recorded with servers in every kind of trouble."""

import json
import re

import pytest

from agents.hostagent.paths import build_stdout_path
from orchestrator.loadtools.metrics import find_metric
from orchestrator.loadtools.model import ToolOutputError
from orchestrator.loadtools.registry import TOOLS

from .record import SCENARIOS, recorded
from .running import OF_A_BUSY_MACHINE, build_result, read_rows

VERSION = "h2load-1.52.0"
H2LOAD = TOOLS["h2load"]
NAMES = sorted(SCENARIOS[VERSION])
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def read(name, folder):
    spec, left = recorded(VERSION, name, folder)
    rows = read_rows("h2load", left)
    return H2LOAD.parse(spec, left.out.read_bytes(), rows, build_result(left))


def codes(reading):
    return set(reading.validity.codes) - OF_A_BUSY_MACHINE


@pytest.mark.parametrize("name", ["h1", "h1_closing", "h1_timed", "h2", "h2c", "h2c_timed"])
def test_summary_of_h2load_matches_its_log(name, tmp_path):
    reading = read(name, tmp_path)
    _, left = recorded(VERSION, name, tmp_path)
    text = build_stdout_path(left.out).read_text()
    match = re.search(r"time for request: +([\d.]+)([a-z]+) +([\d.]+)([a-z]+) +([\d.]+)", text)
    least, most = (float(match[n]) * SECONDS[match[n + 1]] for n in (1, 3))
    assert reading.readings["latency.min"] == pytest.approx(least, rel=0.01)
    assert reading.readings["latency.max"] == pytest.approx(most, rel=0.01)
    assert codes(reading) == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_value_has_a_metric_and_is_finite(name, tmp_path):
    readings = read(name, tmp_path).readings
    assert all(map(find_metric, readings))
    assert all(isinstance(value, float) and value >= 0 for value in readings.values())


@pytest.mark.parametrize(
    ("name", "errors", "found"),
    [
        ("h1", {}, set()),
        ("h1_tls", {}, set()),
        ("h1_closing", {}, set()),
        ("h2", {}, set()),
        ("h2c_timed", {}, set()),
        ("h2_over_limit", {}, set()),
        ("h2c_to_h1_only", {"broken": 4, "unsent": 16}, {"no_answers"}),
        ("tls_to_plain", {"connect": 20}, {"target_unreachable"}),
        ("status404", {}, {"http_errors"}),
        ("mixed", {}, {"http_errors"}),
        ("dropped", {"broken": 4, "unsent": 288}, {"transport_errors"}),
        ("never", {"timeout": 4, "unsent": 292}, {"transport_errors"}),
        ("refused", {"connect": 20}, {"target_unreachable"}),
        ("refused_timed", {"connect": 4}, {"target_unreachable"}),
    ],
)
def test_kinds_of_failure_are_distinguished(name, errors, found, tmp_path):
    reading = read(name, tmp_path)
    assert dict(reading.errors) == errors
    assert codes(reading) == found


def test_a_server_without_a_common_protocol_counts_as_reached(tmp_path):
    """As h2load 1.52.0 says it of a server that fell back to HTTP/1.1."""
    spec, left = recorded(VERSION, "refused_timed", tmp_path)
    stdout = build_stdout_path(left.out)
    message = (
        "No protocol negotiated. Fallback behaviour may be activated\n"
        "No supported protocol was negotiated. Supported protocols were:\nh2\n"
    )
    stdout.write_text(message + stdout.read_text())
    rows = read_rows("h2load", left)
    reading = H2LOAD.parse(spec, left.out.read_bytes(), rows, build_result(left))
    assert dict(reading.errors) == {"h2_protocol": 4}
    assert codes(reading) == {"no_answers"}


def test_lost_connections_are_unknown_with_a_duration(tmp_path):
    """What the sheet warns of: the count of requests under way is all that there is."""
    reading = read("dropped_timed", tmp_path)
    assert reading.errors == {}
    assert reading.truncated == 4
    assert "littles_law" in reading.validity.codes


@pytest.mark.parametrize(
    ("name", "protocol"), [("h1", "h1"), ("h1_tls", "h1"), ("h2c", "h2"), ("h2", "h2")]
)
def test_the_protocol_is_reported(name, protocol, tmp_path):
    assert read(name, tmp_path).protocol == protocol


def test_bodies_are_counted(tmp_path):
    readings = read("h2", tmp_path).readings
    assert readings["body.bytes_per_1k"] == 13_000
    assert readings["connect.mean"] > 0


@pytest.mark.parametrize("lines", [1, 299, 301])
def test_a_log_of_other_requests_is_detected(lines, tmp_path):
    spec, left = recorded(VERSION, "h1", tmp_path)
    log = left.raw.read_text().splitlines(keepends=True)
    left.raw.write_text("".join((log * 2)[:lines]))
    rows = read_rows("h2load", left)
    reading = H2LOAD.parse(spec, left.out.read_bytes(), rows, build_result(left))
    assert "parse_mismatch" in codes(reading)


def test_an_interrupted_load_is_reported(tmp_path):
    spec, left = recorded(VERSION, "h1", tmp_path)
    stdout = build_stdout_path(left.out)
    stdout.write_text(stdout.read_text().partition("finished in")[0])
    rows = read_rows("h2load", left)
    with pytest.raises(ToolOutputError, match=r"did not end by itself.*progress: 100% done"):
        H2LOAD.parse(spec, left.out.read_bytes(), rows, build_result(left, rc=-2, hung=True))


@pytest.mark.parametrize("report", [b"", b"[]", b"{}", b'{"stdout": "x", "logged": 5}'])
def test_invalid_output_is_refused_with_a_reason(report, tmp_path):
    spec, left = recorded(VERSION, "h1", tmp_path)
    rows = read_rows("h2load", left)
    with pytest.raises(ToolOutputError, match="not what the agent keeps of h2load"):
        H2LOAD.parse(spec, report, rows, build_result(left))


def test_the_reader_output_is_json(tmp_path):
    _, left = recorded(VERSION, "mixed", tmp_path)
    read_rows("h2load", left)
    kept = json.loads(left.out.read_bytes())
    assert kept["logged"] == {"answered": 300, "failed": 0}
    assert kept["stdout"].startswith("starting benchmark...")
