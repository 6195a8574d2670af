"""Real rows and reports of k6 1.8.1, recorded against real servers in every kind of trouble."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from agents.hostagent.readers.k6 import read
from orchestrator.loadtools.k6 import K6
from orchestrator.loadtools.metrics import find_metric
from orchestrator.loadtools.model import GrpcCall, LoadSpec, ToolOutputError

GOLDEN = Path(__file__).parent / "golden" / "k6-1.8.1"
INDEX = json.loads((GOLDEN / "index.json").read_text())["recordings"]
NAMES = sorted(path.stem for path in GOLDEN.glob("*.csv"))
SPEC = LoadSpec(path="/hello", connections=2, requests=20)
CALL = GrpcCall(method="helloworld.Greeter/SayHello", data={})
RESULT = {
    "rc": 0, "signal": None, "load_started_at": 1000.0, "load_ended_at": 1001.0,
    "tool": {"name": "k6", "version": "1.8.1"},
}  # fmt: skip


@pytest.fixture
def parsed(tmp_path):
    def parse(name, *, warmup_s=0.0):
        raw = shutil.copy(GOLDEN / f"{name}.csv", tmp_path / "rows.raw")
        out = shutil.copy(GOLDEN / f"{name}.json", tmp_path / "tool.json")
        rows = read(tmp_path, out, raw, warmup_s, get_spec(name).good_statuses)
        return K6().parse(get_spec(name), out.read_bytes(), rows, RESULT), rows

    return parse


def get_spec(name):
    if name.startswith("grpc"):
        return replace(SPEC, requests=20, protocol="grpc", grpc=CALL, good_statuses=(0,))
    return SPEC


def codes(reading):
    return {each.code for each in reading.validity.reasons}


def expanded(part):
    pairs = zip(part["value_us"], part["count"], strict=True)
    return [us for us, n in pairs for _ in range(n)]


def test_each_recording_has_its_command():
    assert len(NAMES) >= 30
    assert set(NAMES) == {name for name, made in INDEX.items() if made["rc"] in (0, 105)}


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_report_describe_the_same_requests(name, parsed):
    reading, rows = parsed(name)
    assert "parse_mismatch" not in codes(reading)
    assert all(map(find_metric, reading.readings))
    assert sum(reading.by_status.values()) == rows["all"]["n"]


@pytest.mark.parametrize(
    ("name", "by_status", "errors", "protocol"),
    [
        ("h1", {200: 20}, {}, "h1"),
        ("h1_tls", {200: 20}, {}, "h1"),
        ("h2_tls", {200: 20}, {}, "h2"),
        ("no_keepalive", {200: 20}, {}, "h1"),
        ("chunked", {200: 6}, {}, "h1"),
        ("post", {200: 6}, {}, "h1"),
        ("open_count", {200: 21}, {}, "h1"),
        ("status_302", {302: 6}, {}, "h1"),
        ("status_404", {404: 6}, {}, "h1"),
        ("status_500", {500: 6}, {}, "h1"),
        ("timeout", {}, {"timeout": 4}, None),
        ("closed_connection", {}, {"broken": 4}, None),
        ("refused", {}, {"refused": 4}, None),
        ("untrusted", {}, {"tls": 4}, None),
        ("grpc", {0: 20}, {}, "grpc"),
        ("grpc_tls", {0: 20}, {}, "grpc"),
        ("grpc_reflection", {0: 20}, {}, "grpc"),
        ("grpc_status_5", {5: 6}, {}, "grpc"),
        ("grpc_status_14", {14: 6}, {}, "grpc"),
        ("grpc_stream", {13: 4}, {}, "grpc"),
        ("grpc_timeout", {}, {"timeout": 4}, None),
        ("grpc_refused", {}, {"refused": 4}, None),
        ("grpc_untrusted", {}, {"tls": 4}, None),
        ("grpc_no_method", {}, {"other": 4}, None),
        ("grpc_bad_message", {}, {"other": 4}, None),
    ],
)
def test_responses_and_failures_are_distinguished(name, by_status, errors, protocol, parsed):
    reading, _ = parsed(name)
    assert reading.by_status == by_status
    assert reading.errors == errors
    assert set(reading.error_texts) == set(errors)
    assert reading.protocol == protocol
    good = by_status.get(0, 0) + by_status.get(200, 0)
    done = sum(by_status.values()) + sum(errors.values())
    assert (reading.ok.n, reading.readings["success.ratio"]) == (good, good / done)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("status_500", "http_errors"),
        ("grpc_status_14", "http_errors"),
        ("refused", "target_unreachable"),
        ("grpc_untrusted", "target_unreachable"),
        ("closed_connection", "no_answers"),
        ("killed", "transport_errors"),
        ("open_too_few", "transport_errors"),
    ],
)
def test_failed_loads_have_a_validity_reason(name, code, parsed):
    assert code in codes(parsed(name)[0])


def test_the_message_of_a_failed_call_is_kept(parsed):
    (text,) = parsed("grpc_bad_message")[0].error_texts["other"]
    assert 'unknown field "nope"' in text


@pytest.mark.parametrize(
    ("name", "length"),
    [("h1", 13), ("h2_tls", 13), ("post", 20), ("chunked", None), ("grpc", None)],
)
def test_body_bytes_are_known_by_content_length_only(name, length, parsed):
    _, rows = parsed(name)
    assert rows["length"] == (None if length is None else {"min": length, "max": length})
    assert rows["bytes"] == (None if length is None else length * rows["all"]["n"])


def test_a_request_that_had_to_connect_took_that_time_too(parsed):
    _, rows = parsed("no_keepalive")
    with open(GOLDEN / "no_keepalive.csv", newline="") as file:
        times = [(row[0], float(row[2])) for row in csv.reader(file) if row[0].startswith("http_")]
    took = [ms for name, ms in times if name == "http_req_duration"]
    before = [ms for name, ms in times if name == "http_req_blocked"]
    assert min(before) > 0.02
    assert expanded(rows["ok"]) == sorted(
        round((a + b) * 1000) for a, b in zip(took, before, strict=True)
    )


def test_requests_due_in_the_warm_up_are_excluded(parsed):
    _, rows = parsed("open", warmup_s=0.5)
    assert (rows["warmup"]["n"], sum(rows["ok"]["count"])) == (20, 40)


def test_a_fraction_of_a_request_a_second_is_a_rate_too(parsed):
    _, rows = parsed("open_fraction")
    assert sum(rows["ok"]["count"]) == 21
    assert rows["corrected"] is True


def test_latency_of_an_open_load_counts_from_the_schedule(parsed):
    """A server that stood still for 200 ms every 2.2 s, with more connections than it made wait."""
    reading, rows = parsed("open_frozen")
    assert reading.errors == {}
    # Two times 200 ms of 60/s: evenly from 0 to 200 ms, but for the shortest.
    waited = [us for us in expanded(rows["ok"]) if us > 20_000]
    assert 18 <= len(waited) <= 24
    thirds = [sum(a <= us < a + 60_000 for us in waited) for a in (20_000, 80_000, 140_000)]
    assert min(thirds) >= 5


def test_what_was_due_while_all_connections_were_busy_is_an_error(parsed):
    reading, rows = parsed("open_too_few")
    assert reading.errors["not_sent"] == sum(reading.errors.values()) > 10
    assert reading.readings["success.ratio"] < 0.95
    # Those that were sent keep their own places in the schedule: one of each freeze waited.
    assert 1 <= len([us for us in expanded(rows["ok"]) if us > 100_000]) <= 2


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (b"", "not JSON"),
        (b'{"asked": {}, "metr', "not JSON"),
        (b"GoError: stat /tree/nope.proto", "not JSON"),
        (b"[]", "list"),
        (b'{"asked": {}}', "lacks answered, metrics"),
        (b'{"asked": {}, "answered": {"x": 1}, "metrics": {}}', "ValueError"),
        (b'{"asked": {}, "answered": {}, "metrics": {"iterations": 1}}', "TypeError"),
    ],
)
def test_invalid_output_is_an_error(report, message):
    rows = {"all": {"n": 0, "percentiles": {}}, "errors": {}}
    with pytest.raises(ToolOutputError, match=message):
        K6().parse(SPEC, report, rows, RESULT)


@pytest.mark.parametrize("change", ["percentiles", "n", "errors"])
def test_rows_of_other_requests_are_a_mismatch(change, parsed, tmp_path):
    _, rows = parsed("h1")
    if change == "percentiles":
        rows["all"]["percentiles"]["p100"] += 1e-6
    elif change == "n":
        rows["all"]["n"] -= 1
    else:
        rows["errors"]["not_sent"] = 1
    report = (tmp_path / "tool.json").read_bytes()
    assert "parse_mismatch" in codes(K6().parse(SPEC, report, rows, RESULT))
