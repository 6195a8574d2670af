"""Values from the output of a script."""

import json

import pytest

from agents.hostagent.paths import build_stdout_path
from agents.hostagent.readers.script import read
from orchestrator.loadtools.model import LoadSpec, ToolOutputError
from orchestrator.loadtools.registry import TOOLS

LOAD = LoadSpec(path="/", connections=1, duration_s=1.0, command=("x",))
DONE = '{"type": "done"}'
REQUEST = '{"type": "request", "start_s": 0.0, "latency_us": 1000000, "ok": true, "status": 200}'
RESULT = {"rc": 0, "signal": None, "tool_cpus": 1}


def read_lines(folder, *lines, spec=LOAD, result=RESULT):
    out = folder / "tool.json"
    build_stdout_path(out).write_text("\n".join(lines))
    rows = json.loads(json.dumps(read(folder, out, folder / "rows.raw", spec.warmup_s)))
    return TOOLS["script"].parse(spec, out.read_bytes(), rows, result)


def test_custom_metrics_are_kept(tmp_path):
    line = '{"type": "reading", "metric": "script.upload_s", "value": 1.5}'
    reading = read_lines(tmp_path, REQUEST, line, DONE)
    assert reading.validity.reasons == ()
    assert reading.readings["script.upload_s"] == 1.5
    assert reading.readings["requests.rate"] == 1
    assert reading.by_status == {200: 1}


@pytest.mark.parametrize("key", ["connect.mean", "latency.first_byte.p50"])
def test_a_script_may_report_values_that_pitwall_cannot_measure(key, tmp_path):
    line = json.dumps({"type": "reading", "metric": key, "value": 0.25})
    assert read_lines(tmp_path, REQUEST, line, DONE).readings[key] == 0.25


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("requests.rate", "which Pitwall determines itself"),
        ("cpu.seconds_per_1k", "which Pitwall determines itself"),
        ("script.upload", "is not a metric.*_per_s, _s, _bytes, _ratio, _count"),
        ("upload_s", "is not a metric"),
    ],
)
def test_other_values_are_refused_with_a_reason(key, message, tmp_path):
    line = json.dumps({"type": "reading", "metric": key, "value": 1})
    with pytest.raises(ToolOutputError, match=f"{key}, .*{message}"):
        read_lines(tmp_path, REQUEST, line, DONE)


def test_the_script_decides_which_responses_are_good(tmp_path):
    expected = '{"type": "request", "latency_us": 5, "ok": true, "status": 404}'
    wrong = '{"type": "request", "latency_us": 5, "ok": false, "status": 200}'
    error = '{"type": "error", "class": "timeout", "count": 2}'
    reading = read_lines(tmp_path, expected, wrong, error, DONE)
    assert (reading.ok.n, reading.other.n) == (1, 1)
    assert reading.readings["success.ratio"] == 0.25
    assert "http_errors" in reading.validity.codes


def test_statuses_are_known_only_if_all_are_reported(tmp_path):
    silent = '{"type": "request", "latency_us": 5, "ok": true}'
    assert read_lines(tmp_path, REQUEST, silent, DONE).by_status is None


def test_the_script_reports_its_end_time(tmp_path):
    spec = LoadSpec(path="/", connections=1, requests=4, command=("x",))
    batch = '{"type": "latencies", "value_us": [500000], "count": [4]}'
    reading = read_lines(tmp_path, batch, '{"type": "done", "ended_s": 2.0}', spec=spec)
    assert reading.readings["requests.rate"] == 2
    assert "requests.rate" not in read_lines(tmp_path, batch, DONE, spec=spec).readings


def test_the_reported_protocol_is_recorded(tmp_path):
    reading = read_lines(tmp_path, REQUEST, '{"type": "protocol", "spoken": "h2"}', DONE)
    assert reading.protocol == "h2"


@pytest.mark.parametrize("report", [b"", b"[]", b"{}", b'{"ended_s": "x"}'])
def test_invalid_output_is_refused_with_a_reason(report, tmp_path):
    out = tmp_path / "tool.json"
    build_stdout_path(out).write_text(REQUEST + "\n" + DONE)
    rows = read(tmp_path, out, tmp_path / "rows.raw", 0.0)
    with pytest.raises(ToolOutputError, match="not what the agent keeps of a script"):
        TOOLS["script"].parse(LOAD, report, rows, RESULT)
