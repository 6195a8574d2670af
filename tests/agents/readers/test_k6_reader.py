import json
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.errors import TrialFailed
from agents.hostagent.readers.k6 import read

HEAD = "metric_name,timestamp,metric_value,error,error_code,proto,status,extra_tags,metadata"
ZERO_NS = 1_795_260_379_000_000_000


def row(metric: str, at_ms: float, value: float, vu: int = 1, *tags: str) -> str:
    cells = [*tags, *[""] * (5 - len(tags))]
    return ",".join([metric, str(ZERO_NS + round(at_ms * 1e6)), f"{value:f}", *cells, f"vu={vu}"])


def http(
    start_ms: float, took_ms: float, status: int = 200, *, vu: int = 1, blocked_ms: float = 0.0,
    error: str = "", code: str = "", proto: str = "HTTP/1.1", size: int | None = 13,
) -> list[str]:  # fmt: skip
    """The rows of one iteration; `took_ms` is without `blocked_ms`."""
    end = start_ms + blocked_ms + took_ms
    tags = (error, code, proto, str(status))
    body = [] if size is None else [row("body_bytes", end + 0.1, size, vu)]
    return [
        row("http_reqs", end, 1, vu, *tags),
        row("http_req_duration", end, took_ms, vu, *tags),
        row("http_req_blocked", end, blocked_ms, vu, *tags),
        *body,
        *iteration(end + 0.1, took_ms + blocked_ms + 0.1, vu),
    ]


def iteration(end_ms: float, took_ms: float, vu: int = 1) -> list[str]:
    return [
        row("iteration_duration", end_ms, took_ms, vu), row("iterations", end_ms, 1, vu),
    ]  # fmt: skip


def grpc(
    start_ms: float, took_ms: float, status: int = 0, status_text: str | None = None
) -> list[str]:
    end = start_ms + took_ms
    more = (
        []
        if status_text is None
        else [row("no_answer", end, 1, 1, "", "", "", "", f"text={status_text}")]
    )
    call = row("grpc_req_duration", end, took_ms, 1, "", "", "", str(status))
    return [call, *more, *iteration(end + 0.1, took_ms + 0.1)]


def reduced(
    folder: Path, parts: list[list[str]], warmup_s: float = 0.0, **requested: Any
) -> dict[str, Any]:
    (folder / "tool.json").write_text(
        json.dumps({"asked": {"rate": None, **requested}, "metrics": {}})
    )
    lines = [HEAD, *(line for part in parts for line in part)]
    (folder / "rows.raw").write_text("\n".join(lines) + "\n")
    # 0 is the status of a good gRPC call.
    return read(folder, folder / "tool.json", folder / "rows.raw", warmup_s, (0, 200))


def test_k6_reader_drops_requests_that_began_in_the_warm_up(tmp_path: Path) -> None:
    rows = reduced(
        tmp_path,
        [
            http(0, 1_500),  # began in the warm-up, ended after it
            http(999.5, 1, vu=2),
            http(1_000, 250, vu=3, size=20),
            http(1_500, 250, 500, vu=4),
        ],
        1.0,
    )
    assert rows["all"]["n"] == 4
    assert rows["warmup"]["n"] == 2
    assert rows["ok"] == {"value_us": [250_000], "count": [1]}
    assert rows["other"] == {"value_us": [250_000], "count": [1]}
    assert rows["window"] == {"start_s": 1.0, "end_s": 1.75}
    assert (rows["bytes"], rows["length"]) == (33, {"min": 20, "max": 20})
    assert (rows["errors"], rows["protocol"], rows["corrected"]) == ({}, "h1", False)


def test_latency_includes_getting_the_connection(tmp_path: Path) -> None:
    rows = reduced(tmp_path, [http(0, 2, blocked_ms=1.5), http(10, 2)])
    assert rows["ok"]["value_us"] == [2_000, 3_500]
    assert rows["all"]["percentiles"] == {"p0": 0.002, "p100": 0.002}


def test_rows_of_virtual_users_may_be_mixed(tmp_path: Path) -> None:
    one, two = http(0, 4, vu=1, size=1), http(0.5, 2, vu=22, size=2)
    rows = reduced(tmp_path, [one[:3], two, one[3:]])
    assert rows["ok"]["value_us"] == [2_000, 4_000]
    assert rows["length"] == {"min": 1, "max": 2}


def test_one_unknown_length_makes_the_bytes_unknown(tmp_path: Path) -> None:
    rows = reduced(tmp_path, [http(0, 1), http(5, 1, size=None)])
    assert (rows["bytes"], rows["length"]) == (None, None)


def test_the_report_counts_responses_by_status(tmp_path: Path) -> None:
    reduced(tmp_path, [http(0, 1), http(5, 1), http(9, 1, 404), http(20, 1, 0, code="1050")], 0.004)
    report = json.loads((tmp_path / "tool.json").read_text())
    assert report["answered"] == {"200": 2, "404": 1}
    assert report["asked"] == {"rate": None}


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        ("1050", "request timeout", "timeout"),
        ("1101", "lookup: no such host", "dns"),
        ("1201", "write: broken pipe", "broken"),
        ("1211", "dial: i/o timeout", "timeout"),
        ("1212", "dial: connection refused", "refused"),
        ("1213", "dial: unknown errno 24 error with msg `too many open files`", "client_fd_limit"),
        ("1220", "read: connection reset by peer", "broken"),
        ("1310", "x509: unknown authority", "tls"),
        ("1633", "http2: stream error with http2 ErrCode INTERNAL_ERROR", "h2_protocol"),
        ("1000", "EOF", "broken"),
        ("1000", "something new", "other"),
        ("", "", "other"),
    ],
)
def test_requests_without_a_response_are_counted_by_class(
    code: str, text: str, kind: str, tmp_path: Path
) -> None:
    failed = http(5, 1, 0, error=text, code=code, proto="", size=None)
    caught = row("no_answer", 6, 1, 1, "", "", "", "", f"text={text}")
    rows = reduced(tmp_path, [http(0, 1), [*failed[:3], caught, *failed[3:]]])
    assert rows["errors"] == {kind: 1}
    assert rows["error_texts"] == ({kind: [text]} if text else {})
    assert rows["all"]["n"] == 1
    assert rows["bytes"] == 13


def test_a_grpc_call_is_counted_by_its_code(tmp_path: Path) -> None:
    rows = reduced(
        tmp_path,
        [
            grpc(0, 1),
            grpc(5, 1, 5, "no such thing"),
            grpc(10, 1, 14, "connection error: connection refused"),
        ],
    )
    assert rows["by_status"] == {"0": 1, "5": 1}
    assert (rows["ok"]["count"], rows["other"]["count"]) == ([1], [1])
    assert rows["errors"] == {"refused": 1}
    assert (rows["protocol"], rows["bytes"]) == ("grpc", None)


def test_an_iteration_without_a_request_is_an_error(tmp_path: Path) -> None:
    failed = [row("no_answer", 30, 1, 1, "", "", "", "", "text=context deadline exceeded")]
    rows = reduced(tmp_path, [grpc(0, 1), [*failed, *iteration(30, 20)], grpc(40, 1)])
    assert rows["errors"] == {"timeout": 1}
    assert rows["all"]["n"] == 2


def test_in_an_open_load_latency_counts_from_when_a_request_was_due(tmp_path: Path) -> None:
    """100 a second; the third is sent 30 ms late, and so are two behind it."""
    starts = [0, 10, 50, 50, 50, 51]
    rows = reduced(tmp_path, [http(start, 2, vu=vu) for vu, start in enumerate(starts)], rate=100)
    assert rows["corrected"] is True
    assert rows["ok"] == {
        "value_us": [2_000, 3_000, 12_000, 22_000, 32_000],
        "count": [2, 1, 1, 1, 1],
    }


def test_dropped_iterations_are_errors_with_a_position_in_the_schedule(tmp_path: Path) -> None:
    dropped = row("dropped_iterations", 10, 1, 1)
    failed = [row("no_answer", 25, 1, 2, "", "", "", "", "text=EOF"), *iteration(25, 5, 2)]
    rows = reduced(tmp_path, [http(0, 2), [dropped], failed, http(30, 2)], rate=100)
    assert rows["errors"] == {"not_sent": 1, "broken": 1}
    assert rows["ok"] == {"value_us": [2_000], "count": [2]}


def test_requests_that_began_after_the_end_are_not_counted(tmp_path: Path) -> None:
    rows = reduced(
        tmp_path, [http(10 * k, 1) for k in range(12)], rate=100, duration="100ms"
    )  # fmt: skip
    assert (rows["all"]["n"], rows["ok"]["count"]) == (12, [10])


def test_two_protocols_are_both_reported(tmp_path: Path) -> None:
    rows = reduced(tmp_path, [http(0, 1), http(5, 1, proto="HTTP/2.0")])
    assert rows["protocol"] == "h1, h2"


def test_empty_output_is_not_a_failure_of_the_tool(tmp_path: Path) -> None:
    rows = reduced(tmp_path, [], rate=100)
    assert rows["all"] == {"n": 0, "percentiles": {}}
    assert rows["errors"] == {}


def test_missing_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(TrialFailed, match="no report"):
        read(tmp_path, tmp_path / "tool.json", tmp_path / "rows.raw", 0.0)
    (tmp_path / "tool.json").write_text("{}")
    with pytest.raises(TrialFailed, match="no rows"):
        read(tmp_path, tmp_path / "tool.json", tmp_path / "rows.raw", 0.0)


@pytest.mark.parametrize(
    "text",
    ["", "panic", "metric_name,timestamp\n", f"{HEAD}\nhttp_req_duration,12", "\0", "a" * 200_000],
)
def test_invalid_output_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "tool.json").write_text('{"asked": {"rate": null}, "metrics": {}}')
    (tmp_path / "rows.raw").write_text(text)
    with pytest.raises((ValueError, LookupError)):
        read(tmp_path, tmp_path / "tool.json", tmp_path / "rows.raw", 0.0)
