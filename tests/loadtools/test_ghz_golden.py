"""Real reports of ghz 0.93.0, recorded against real servers in every kind of trouble."""

import json
import shutil
from pathlib import Path

import pytest

from agents.hostagent.readers.ghz import read
from orchestrator.loadtools.ghz import Ghz
from orchestrator.loadtools.metrics import find_metric
from orchestrator.loadtools.model import GrpcCall, LoadSpec, ToolOutputError

GOLDEN = Path(__file__).parent / "golden" / "ghz-0.93.0"
INDEX = json.loads((GOLDEN / "index.json").read_text())["recordings"]
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json") if path.stem != "index")
SPEC = LoadSpec(
    path="/", connections=2, streams=2, requests=60, protocol="grpc", good_statuses=(0,),
    grpc=GrpcCall(method="helloworld.Greeter/SayHello", data={}),
)  # fmt: skip
RESULT = {
    "rc": 0, "signal": None, "load_started_at": 1000.0, "load_ended_at": 1001.0,
    "tool": {"name": "ghz", "version": "0.93.0"},
}  # fmt: skip


@pytest.fixture
def parsed(tmp_path):
    def parse(name, *, warmup_s=0.0):
        raw = shutil.copy(GOLDEN / f"{name}.json", tmp_path / "rows.raw")
        rows = read(tmp_path, tmp_path / "tool.json", raw, warmup_s)
        report = (tmp_path / "tool.json").read_bytes()
        return Ghz().parse(SPEC, report, rows, RESULT), rows, json.loads(report)

    return parse


def codes(reading):
    return {each.code for each in reading.validity.reasons}


def test_each_recording_has_its_command():
    assert len(NAMES) >= 25
    assert set(NAMES) == {name for name, made in INDEX.items() if made["rc"] == 0}


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_report_describe_the_same_calls(name, parsed):
    reading, rows, report = parsed(name)
    assert "parse_mismatch" not in codes(reading)
    assert rows["all"]["n"] + sum(rows["errors"].values()) == report["count"]
    assert "details" not in report
    assert all(map(find_metric, reading.readings))
    assert reading.protocol == "grpc"


@pytest.mark.parametrize(
    ("name", "by_status", "errors"),
    [
        ("unary", {0: 60}, {}),
        ("unary_messages", {0: 30, 5: 30}, {}),
        ("client_stream", {0: 60}, {}),
        ("server_stream", {0: 60}, {}),
        ("bidi", {0: 60}, {}),
        ("tls", {0: 60}, {}),
        ("metadata", {0: 4}, {}),
        ("reflection", {0: 60}, {}),
        ("interrupted", {0: 50}, {}),
        ("status_1", {1: 6}, {}),
        ("status_2", {2: 6}, {}),
        ("status_4", {}, {"timeout": 6}),
        ("status_13", {13: 6}, {}),
        ("status_14", {14: 6}, {}),
        ("timeout", {}, {"timeout": 6}),
        ("refused", {}, {"refused": 6}),
        ("killed", {0: 59}, {"refused": 40}),
        ("tls_untrusted", {}, {"tls": 6}),
        ("plain_to_tls", {}, {"broken": 4}),
        ("tls_to_plain", {}, {"timeout": 4}),
        ("not_grpc", {}, {"broken": 6}),
    ],
)
def test_responses_and_failures_are_distinguished(name, by_status, errors, parsed):
    reading, _, _ = parsed(name)
    assert reading.by_status == by_status
    assert reading.errors == errors
    assert set(reading.error_texts) == set(errors)
    good, done = by_status.get(0, 0), sum(by_status.values()) + sum(errors.values())
    assert reading.ok.n == good
    assert reading.other.n == sum(by_status.values()) - good
    assert reading.readings["success.ratio"] == good / done


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("status_14", "http_errors"),
        ("refused", "target_unreachable"),
        ("tls_untrusted", "target_unreachable"),
        ("timeout", "target_unreachable"),
        ("not_grpc", "no_answers"),
        ("killed", "transport_errors"),
    ],
)
def test_failed_loads_have_a_validity_reason(name, code, parsed):
    assert code in codes(parsed(name)[0])


def test_a_bad_status_of_grpc_is_counted(parsed):
    (reason,) = [r for r in parsed("status_14")[0].validity.reasons if r.code == "http_errors"]
    assert "6 of 6 answers had a status other than 0" in reason.message


def test_latency_is_unknown_without_a_good_response(parsed):
    for name in ("refused", "status_14", "timeout"):
        reading, rows, _ = parsed(name)
        assert not [key for key in reading.readings if key.startswith("latency.")]
        assert "requests.rate" not in reading.readings
        assert rows["ok"] == {"value_us": [], "count": []}


def test_bytes_are_unknown(parsed):
    reading, rows, _ = parsed("unary")
    assert rows["bytes"] is None
    assert rows["length"] is None
    assert "throughput.bytes_per_s" not in reading.readings


def test_a_closed_load_has_the_latencies_that_ghz_has(parsed):
    _, rows, _ = parsed("unary")
    details = json.loads((GOLDEN / "unary.json").read_text())["details"]
    latencies = [
        us for us, n in zip(rows["ok"]["value_us"], rows["ok"]["count"], strict=True)
        for _ in range(n)
    ]  # fmt: skip
    assert latencies == sorted(round(each["latency"] / 1000) for each in details)
    assert rows["corrected"] is False


def test_calls_that_began_in_the_warm_up_are_excluded(parsed):
    """The server took 200 ms for the first call, which the warm-up of 100 ms let begin."""
    _, rows, report = parsed("duration", warmup_s=0.1)
    slow = rows["warmup"]["slices"][-1]
    assert (rows["warmup"]["n"], slow["answered"]) == (1, 1)
    assert slow["max_us"] > 200_000 > rows["ok"]["value_us"][-1]
    assert sum(rows["ok"]["count"]) == report["count"] - 1


def test_calls_after_the_duration_are_not_counted(parsed):
    _, rows, report = parsed("open", warmup_s=0.2)
    assert report["count"] == rows["all"]["n"] == 122
    assert rows["warmup"]["n"] == 20
    assert sum(rows["ok"]["count"]) == 100


def test_latency_of_an_open_load_counts_from_the_schedule(parsed):
    """A server that stood still for 200 ms every 2.2 s: each call due in that time waited."""
    _, rows, _ = parsed("open_frozen")
    assert rows["corrected"] is True
    values = [
        us for us, n in zip(rows["ok"]["value_us"], rows["ok"]["count"], strict=True)
        for _ in range(n)
    ]  # fmt: skip
    details = json.loads((GOLDEN / "open_frozen.json").read_text())["details"]
    plain = sorted(each["latency"] / 1000 for each in details)
    assert all(due >= began - 1 for due, began in zip(values, plain, strict=True))
    # Two of some 200 ms in 4.4 s: calls were due each 10 ms of them, evenly.
    waited = [us for us in values if us > 50_000]
    assert 26 <= len(waited) <= 34


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (b"", "not JSON"),
        (b'{"count": 5, "tot', "not JSON"),
        (b"Segmentation fault", "not JSON"),
        (b"[]", "list"),
        (b'{"count": 5}', "lacks statusCodeDistribution, errorDistribution"),
        (b'{"count": 1, "statusCodeDistribution": {"OK": "x"}, "errorDistribution": {}}', "Type"),
    ],
)
def test_invalid_output_is_an_error(report, message):
    with pytest.raises(ToolOutputError, match=message):
        Ghz().parse(SPEC, report, {"all": {"n": 1, "percentiles": {}}, "errors": {}}, RESULT)


def test_rows_of_other_calls_are_a_mismatch(parsed, tmp_path):
    _, rows, report = parsed("unary")
    rows["all"]["percentiles"]["p50"] += 1e-6
    reading = Ghz().parse(SPEC, json.dumps(report).encode(), rows, RESULT)
    assert "parse_mismatch" in codes(reading)
