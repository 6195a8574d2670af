"""What is computed from the rows, and when a trial is not to be believed."""

import json
from dataclasses import replace

import pytest

from orchestrator.loadtools.model import Level, ToolOutputError
from orchestrator.loadtools.registry import TOOLS

from .conftest import build_load, result_for


def parse(output, rows, result):
    return TOOLS["oha"].parse(build_load(result, rows), json.dumps(output).encode(), rows, result)


def codes(reading):
    return [each.code for each in reading.validity.reasons]


def test_a_calm_load_is_valid(calm):
    reading = parse(*calm)
    assert reading.validity.level == Level.VALID
    assert reading.tool_version == "1.16.0"
    assert reading.load.model == "closed"
    assert (reading.window_start_s, reading.window_end_s) == (0.0, 1.0)


def test_all_values_are_computed_from_the_rows(calm):
    readings = parse(*calm).readings
    assert readings["requests.rate"] == 1000
    assert readings["requests.ok"] == readings["requests.answered"] == 1000
    assert readings["throughput.bytes_per_s"] == 13_000
    assert readings["success.ratio"] == 1.0
    assert readings["requests.errors"] == 0
    assert readings["latency.mean"] == pytest.approx(0.010)
    assert readings["latency.sd"] == pytest.approx(0.000447, rel=1e-2)
    assert (readings["latency.min"], readings["latency.max"]) == (0.009, 0.011)
    assert (readings["latency.p50"], readings["latency.p99"]) == (0.010, 0.011)
    assert readings["oha.summary.requestsPerSec"] == 990


def test_bytes_of_good_responses_are_counted(calm):
    output, rows, result = calm
    spec = replace(build_load(result, rows), method="PUT", body="ä" * 32)
    reading = TOOLS["oha"].parse(spec, json.dumps(output).encode(), rows, result)
    assert reading.readings["throughput.sent_bytes_per_s"] == 64_000
    assert "throughput.sent_bytes_per_s" not in parse(*calm).readings


def test_percentiles_are_nearest_rank(calm):
    output, rows, result = calm
    rows["ok"] = {"value_us": list(range(1, 1001)), "count": [1] * 1000}
    readings = parse(output, rows, result).readings
    values = {key: round(readings[f"latency.{key}"] * 1e6) for key in ("p50", "p90", "p95", "p99")}
    assert values == {"p50": 500, "p90": 900, "p95": 950, "p99": 990}


def test_a_percentile_without_ten_requests_beyond_it_is_unknown(calm):
    readings = parse(*calm).readings
    assert "latency.p99" in readings
    assert "latency.p99.9" not in readings
    assert "latency.p99.99" not in readings


def test_answers_of_the_warm_up_do_not_count(calm):
    output, rows, _ = calm
    rows["window"]["start_s"] = 1.0
    reading = parse(output, rows, result_for(argv=("-z", "3s", "-c", "10")))
    assert reading.readings["requests.rate"] == 500
    assert (reading.window_start_s, reading.window_end_s) == (1.0, 3.0)


def test_a_count_of_requests_ends_with_its_last_answer(calm):
    output, rows, _ = calm
    reading = parse(output, rows, result_for(argv=("-n", "1000", "-c", "10")))
    assert reading.readings["requests.rate"] == pytest.approx(1000 / 1.004)


def test_cpu_is_shared_among_all_answers_of_the_load(calm):
    output, rows, result = calm
    result["usage"] = {
        "server_cpu_s": 0.5, "tool_cpu_s": 0.2, "server_peak_rss_bytes": 1 << 20, "steal_s": 0.0,
    }  # fmt: skip
    output["statusCodeDistribution"]["200"] = rows["all"]["n"] = 2000
    readings = parse(output, rows, result).readings
    assert readings["cpu.seconds_per_1k"] == 0.25
    # Of the second that the load lasted: at its end a tool may wait for nothing.
    assert readings["cpu.tool_share"] == pytest.approx(0.2)
    assert readings["memory.server_peak"] == 1 << 20


def test_a_load_tool_is_compared_with_its_cpu_quota(calm):
    """A tenth of a core is little for a tool that has one, and all for one that may use no more."""
    output, rows, result = calm
    result["usage"] = {"tool_cpu_s": 0.2}
    result["limits"] = {"tool": {"cpus": [1], "cpu_quota": 0.2}, "server": {"cpus": [0]}}
    reading = parse(output, rows, result)
    assert reading.readings["cpu.tool_share"] == pytest.approx(1.0)
    assert codes(reading) == ["tool_bound"]
    assert "used 100 % of its CPU quota of 0.2" in reading.validity.reasons[0].message
    # A quota that is more than its threads can use holds nothing back.
    result["limits"]["tool"]["cpu_quota"] = 4
    assert parse(output, rows, result).readings["cpu.tool_share"] == pytest.approx(0.2)


def test_unreadable_usage_is_unknown(calm):
    readings = parse(*calm).readings
    assert not {"cpu.seconds_per_1k", "cpu.tool_share", "memory.server_peak"} & set(readings)


def test_an_open_load_is_compared_with_its_schedule(calm):
    output, rows, _ = calm
    enough = parse(output, rows, result_for(argv=("-z", "2s", "-q", "500", "-c", "50")))
    assert enough.planned == 1000
    assert enough.delivered == 1.0
    assert enough.validity.level == Level.VALID
    assert enough.notes[0].startswith("open loop")
    short = parse(output, rows, result_for(argv=("-z", "2s", "-q", "510", "-c", "50")))
    assert codes(short) == ["underdelivered"]
    assert short.validity.level == Level.INVALID


@pytest.mark.parametrize(
    ("changes", "code", "level"),
    [
        ({"rc": 1}, "tool_crashed", Level.INVALID),
        ({"rc": None, "signal": 9}, "tool_crashed", Level.INVALID),
        ({"hung": True}, "hung", Level.INVALID),
        ({"server_exit": 1}, "server_died", Level.INVALID),
        ({"server_exit": 0}, "server_died", Level.INVALID),
        ({"usage": {"tool_cpu_s": 1.8}}, "tool_bound", Level.INVALID),
        ({"usage": {"tool_cpu_s": 1.95}}, "tool_bound", Level.INVALID),
        ({"interference": {"a": {"steal_share": 0.02}}}, "steal", Level.SUSPECT),
    ],
)
def test_environment_facts_determine_the_validity_of_a_trial(calm, changes, code, level):
    output, rows, result = calm
    reading = parse(output, rows, {**result, **changes})
    assert codes(reading) == [code]
    assert reading.validity.level == level


@pytest.mark.parametrize("changed", ["percentile", "missing percentile", "count"])
def test_rows_that_contradict_the_output_are_detected(calm, changed):
    output, rows, result = calm
    if changed == "percentile":
        rows["all"]["percentiles"]["p50"] = 0.010000000000000002
    elif changed == "missing percentile":
        del rows["all"]["percentiles"]["p99"]
    else:
        rows["all"]["n"] = 999
    assert codes(parse(output, rows, result)) == ["parse_mismatch"]


def test_time_outside_of_requests_is_flagged(calm):
    output, rows, _ = calm
    reading = parse(output, rows, result_for(argv=("-z", "1s", "-c", "12")))
    assert codes(reading) == ["littles_law"]
    assert reading.validity.level == Level.SUSPECT


def test_responses_with_other_statuses_are_counted_separately(calm):
    output, rows, result = calm
    rows["other"] = {"value_us": [100], "count": [5]}
    rows["all"]["n"] = 1005
    output["statusCodeDistribution"]["503"] = 5
    reading = parse(output, rows, result)
    assert codes(reading) == ["http_errors"]
    assert reading.by_status == {200: 1000, 503: 5}
    assert reading.readings["requests.rate"] == 1000
    assert reading.readings["latency.min"] == 0.009


def test_a_few_transport_errors_are_tolerated(calm):
    output, rows, result = calm
    output["errorDistribution"] = {"timeout": 1}
    assert parse(output, rows, result).validity.level == Level.VALID
    output["errorDistribution"] = {"timeout": 2}
    assert codes(parse(output, rows, result)) == ["transport_errors"]


def test_a_load_that_was_all_warm_up_is_invalid(calm):
    output, rows, result = calm
    rows["ok"] = {"value_us": [], "count": []}
    assert codes(parse(output, rows, result)) == ["empty_window"]


@pytest.mark.parametrize(
    ("tool_json", "message"),
    [
        (b"", "not JSON"),
        (b"Error: relative URL without a base", "relative URL"),
        (b"[]", "a list, expected an object"),
        (b"{}", "lacks summary, latencyPercentiles"),
    ],
)
def test_output_that_is_not_ohas_is_refused(calm, tool_json, message):
    _, rows, result = calm
    with pytest.raises(ToolOutputError, match=message):
        TOOLS["oha"].parse(build_load(result, rows), tool_json, rows, result)


@pytest.mark.parametrize("missing", ["ok", "all", "window", "bytes"])
def test_rows_with_a_part_missing_are_refused(calm, missing):
    output, rows, result = calm
    load = build_load(result, rows)
    del rows[missing]
    with pytest.raises(ToolOutputError, match=f"rows.json.*{missing}"):
        TOOLS["oha"].parse(load, json.dumps(output).encode(), rows, result)
