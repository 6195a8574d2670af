import json
from array import array
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.errors import TrialFailed
from agents.hostagent.readers import json_stream
from agents.hostagent.readers.ghz import read
from agents.hostagent.readers.grpc_status import classify_failure
from agents.hostagent.readers.schedule import compute_schedule

#: Start and latency in ms, status, error.
Call = tuple[float, float, str, str]


def report(calls: list[Call], *, zone: str = "Z", **options: Any) -> dict[str, Any]:
    errors: dict[str, int] = {}
    statuses: dict[str, int] = {}
    for _, _, status, error in calls:
        statuses[status] = statuses.get(status, 0) + 1
        if error:
            errors[error] = errors.get(error, 0) + 1
    return {
        "date": "2026-11-21T11:03:45Z",
        "options": {"call": "a.B/C", "data": {"details": [1]}, **options},
        "count": len(calls),
        "errorDistribution": errors,
        "statusCodeDistribution": statuses,
        "details": [
            {
                "timestamp": f"2026-11-21T11:03:{(start + took) / 1e3:012.9f}".rstrip("0") + zone,
                "latency": round(took * 1e6),
                "error": error,
                "status": status,
            }
            for start, took, status, error in calls
        ],
    }


def reduced(folder: Path, content: dict[str, Any], warmup_s: float = 0.0) -> dict[str, Any]:
    (folder / "rows.raw").write_text(json.dumps(content))
    return read(folder, folder / "tool.json", folder / "rows.raw", warmup_s)


def good(start_ms: float, took_ms: float) -> Call:
    return (start_ms, took_ms, "OK", "")


def test_ghz_reader_drops_calls_that_began_in_the_warm_up(tmp_path: Path) -> None:
    calls = [
        good(5_000, 1_500),  # began in the warm-up, ended after it
        good(5_999.5, 1),
        good(6_000, 250),
        (6_500.25, 250, "NotFound", "rpc error: code = NotFound desc = no such thing"),
    ]
    rows = reduced(tmp_path, report(calls), 1.0)
    assert rows["all"]["n"] == 4
    assert rows["warmup"]["n"] == 2
    assert rows["ok"] == {"value_us": [250_000], "count": [1]}
    assert rows["other"] == {"value_us": [250_000], "count": [1]}
    assert rows["by_status"] == {"0": 1, "5": 1}
    assert rows["window"] == {"start_s": 1.0, "end_s": pytest.approx(1.75025)}
    assert (rows["errors"], rows["bytes"], rows["protocol"]) == ({}, None, "grpc")


@pytest.mark.parametrize("zone", ["Z", "+01:00", "-09:30"])
def test_ghz_reader_reads_every_time_zone(zone: str, tmp_path: Path) -> None:
    rows = reduced(tmp_path, report([good(1_000, 10), good(2_000, 10)], zone=zone))
    assert rows["window"]["end_s"] == pytest.approx(1.01)


def test_the_report_is_kept_without_its_details(tmp_path: Path) -> None:
    content = report([good(0, 1)])
    reduced(tmp_path, content)
    kept = json.loads((tmp_path / "tool.json").read_text())
    assert kept == {name: part for name, part in content.items() if name != "details"}


def test_calls_without_a_response_are_counted_by_class(tmp_path: Path) -> None:
    refused = "rpc error: code = Unavailable desc = connection error: dial: connection refused"
    late = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    calls: list[Call] = [
        good(0, 1), (1, 1, "Unavailable", refused), (2, 1, "Unavailable", refused),
        (3, 1, "DeadlineExceeded", late), (4, 1, "", "strange"),
    ]  # fmt: skip
    rows = reduced(tmp_path, report(calls))
    assert rows["errors"] == {"refused": 2, "timeout": 1, "other": 1}
    assert rows["error_texts"]["refused"] == [refused]
    assert rows["all"]["n"] == 1
    assert rows["by_status"] == {"0": 1}


def test_in_an_open_load_latency_counts_from_when_a_call_was_due(tmp_path: Path) -> None:
    """100 a second; the third is begun 30 ms late, and so are two behind it."""
    starts = [1_000, 1_010, 1_050, 1_050, 1_050, 1_051]
    rows = reduced(tmp_path, report([good(start, 2) for start in starts], rps=100))
    assert rows["corrected"] is True
    assert rows["ok"] == {
        "value_us": [2_000, 3_000, 12_000, 22_000, 32_000],
        "count": [2, 1, 1, 1, 1],
    }


def test_failed_calls_keep_their_position_in_the_schedule(tmp_path: Path) -> None:
    broken = "rpc error: code = Unavailable desc = transport is closing"
    calls: list[Call] = [good(0, 1), (10, 1, "Unavailable", broken), good(20, 1)]
    rows = reduced(tmp_path, report(calls, rps=100))
    assert rows["ok"] == {"value_us": [1_000], "count": [2]}


def test_calls_that_began_after_the_end_are_not_counted(tmp_path: Path) -> None:
    calls = [good(10 * k, 1) for k in range(12)]
    rows = reduced(tmp_path, report(calls, rps=100, duration=100_000_000))
    assert rows["all"]["n"] == 12
    assert rows["ok"]["count"] == [10]


@pytest.mark.parametrize("n", [1, 2, 3, 10, 20, 99, 100, 101])
def test_ghz_reader_computes_the_same_percentiles_as_ghz(n: int, tmp_path: Path) -> None:
    rows = reduced(tmp_path, report([good(k, k + 1) for k in range(n)]))
    percentiles = rows["all"]["percentiles"]
    points = (10, 25, 50, 75, 90, 95, 99)
    # The smallest with p % at or below it: ghz's ranks, that begin at 0.
    expected = {f"p{p}": max(1, -(-p * n // 100)) / 1e3 for p in points}
    assert percentiles == pytest.approx(expected)


def test_more_calls_than_ghz_keeps_are_refused(tmp_path: Path) -> None:
    content = {**report([good(0, 1), good(1, 1)]), "count": 3}
    with pytest.raises(TrialFailed, match="the first 2 of 3 calls"):
        reduced(tmp_path, content)


def test_no_response_at_all_is_not_a_failure_of_the_tool(tmp_path: Path) -> None:
    rows = reduced(tmp_path, {**report([]), "details": None})
    assert rows["all"] == {"n": 0, "percentiles": {}}
    assert rows["window"]["end_s"] is None


def test_a_missing_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrialFailed, match="no report"):
        read(tmp_path, tmp_path / "tool.json", tmp_path / "rows.raw", 0.0)


@pytest.mark.parametrize(
    "text", ["", "{", "panic: runtime error", '{"details": [{"latency"', '{"details": [1', "[]"]
)
def test_invalid_output_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "rows.raw").write_text(text)
    with pytest.raises((ValueError, TypeError)):
        read(tmp_path, tmp_path / "tool.json", tmp_path / "rows.raw", 0.0)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 20])
def test_a_long_array_is_read_in_pieces(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", chunk)
    whole = {"a": [1, {"b": 'x,]"}'}], "big": [12, -3.5e2, "é}", {"c": []}], "z": 123, "n": None}
    (tmp_path / "it").write_text(json.dumps(whole, indent=chunk % 3), encoding="utf-8")
    taken: list[Any] = []
    rest = json_stream.read_object(tmp_path / "it", "big", taken.append)
    assert taken == whole["big"]
    assert rest == {name: part for name, part in whole.items() if name != "big"}


def test_a_schedule_begins_so_that_no_call_was_early() -> None:
    assert compute_schedule([103, 111, 129], [], 10) == (101, array("q", [101, 111, 121]))
    assert compute_schedule([129, 103, 111], [], 10) == (101, array("q", [121, 101, 111]))
    assert compute_schedule([110, 120], [100], 10) == (100, array("q", [110, 120]))
    assert compute_schedule([], [5], 10) == (5, array("q"))


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (0, "", None),
        (5, "connection refused", None),
        (14, "as asked", None),
        (14, 'Error while dialing dial tcp [::1]:1: connect: connection refused"', "refused"),
        (14, "error reading from server: EOF", "broken"),
        (13, "cardinality violation: expected <EOF> for non server-streaming RPCs", None),
        (14, "transport: authentication handshake failed: x509: certificate signed by", "tls"),
        (14, "dial tcp: lookup nowhere: no such host", "dns"),
        (14, "socket: too many open files", "client_fd_limit"),
        (13, "stream terminated by RST_STREAM with error code: CANCEL", "h2_protocol"),
        (1, "grpc: the client connection is closing", "broken"),
        (4, "anything", "timeout"),
        (None, "anything", "other"),
    ],
)  # fmt: skip
def test_error_texts_of_the_client_mean_no_response(code: int, text: str, kind: str) -> None:
    assert classify_failure(code, text) == kind
