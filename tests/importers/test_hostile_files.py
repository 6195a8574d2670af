"""Files that are small and would cost much memory or time are refused, with the reason."""

import io
import json
import math
import zipfile
from typing import Any

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers import history_values, rows
from orchestrator.importers.history_values import HistoryOptions, read_history
from orchestrator.importers.registry import FORMATS
from orchestrator.importers.rows import LONGEST_NAME, limit_rows

SHA = "ab" * 20


def read(content: bytes, name: str = "upload.json") -> history_values.HistoryFile:
    return read_history(name, content, HistoryOptions())


def build_asv(results: dict[str, Any], **changes: Any) -> bytes:
    whole = {
        "version": 2, "params": {"machine": "lab"}, "commit_hash": SHA, "date": 1_700_000_000_000,
        "env_name": "py", "result_columns": ["result", "params"], "results": results, **changes,
    }  # fmt: skip
    return json.dumps(whole).encode()


def build_entries(*suites: str, value: Any = 1, **bench: Any) -> bytes:
    """A `data.js` with one value for each suite."""
    entry = {
        "date": 1_700_000_000_000,
        "commit": {"id": SHA, "message": "x"},
        "benches": [{"name": "a", "unit": "ns", "value": value, **bench}],
    }
    return json.dumps({"entries": {suite: [entry] for suite in suites}}).encode()


def build_csv(*lines: str) -> bytes:
    return "\n".join(("metric,unit,value,profile,suite,commit", *lines)).encode()


@pytest.mark.parametrize("axes", [[["1", "2", "3"]] * 60, [["x"]] * 200])
def test_combinations_of_parameters_are_limited(axes: list[list[str]]) -> None:
    with pytest.raises(InvalidRequestError, match="at most 100 parameters and 20000 combinations"):
        read(build_asv({"bench.time_x": [None, axes]}))


def test_results_without_a_value_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 1_000)
    axes = [[str(number) for number in range(100)]] * 2
    few = {f"bench.time_{number}": [None, axes[:1]] for number in range(9)}
    assert list(limit_rows(FORMATS["asv"].read(build_asv(few))))
    with pytest.raises(InvalidRequestError, match="at most 1000 results, with those without"):
        read(build_asv({"bench.time_x": [None, axes]}))


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (build_entries("s" * (LONGEST_NAME + 1)), "upload.json"),
        (
            build_asv({"bench.time_x": [[1.0], []]}, env_name="e" * (LONGEST_NAME + 1)),
            "upload.json",
        ),
        (build_csv("time,s,1,lab,suite," + "c" * (LONGEST_NAME + 1)), "upload.csv"),
    ],
)
def test_names_that_many_results_could_share_have_a_limited_length(
    content: bytes, name: str
) -> None:
    with pytest.raises(
        InvalidRequestError, match=f"result 1: expected names of at most {LONGEST_NAME}"
    ):
        read(content, name)


def test_a_long_message_of_a_commit_is_cut() -> None:
    whole = json.loads(build_entries("suite"))
    whole["entries"]["suite"][0]["commit"]["message"] = "m" * 1_000_000
    [value] = read(json.dumps(whole).encode()).values
    assert value.subject == "m" * 300


def test_many_columns_are_read_in_linear_time_and_refused() -> None:
    count = 100_000
    heading = ",".join(f"case.a{number}" for number in range(count))
    content = f"metric,value,{heading}\ntime,1{',x' * count}\n".encode()
    with pytest.raises(InvalidRequestError, match="at most 100 parameters, got 100000"):
        read(content, "upload.csv")


def test_small_parts_are_limited_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_values, "MOST_PARTS", 5_000)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", "[" + "[]," * 3_000 + "[]]")
    for content in (b"[" + b"{}," * 3_000 + b"{}]", packed.getvalue()):
        with pytest.raises(InvalidRequestError, match="at most 5000 fields and lists"):
            read(content)


def test_benchmarks_and_hosts_of_a_history_are_limited() -> None:
    suites = build_entries(*(f"suite-{number}" for number in range(501)))
    with pytest.raises(InvalidRequestError, match="names 501 benchmarks") as refused:
        read(suites)
    assert refused.value.field == "benchmark"
    assert len(read_history("x.json", suites, HistoryOptions(benchmark="one")).values) == 501
    hosts = build_csv(*(f"time,s,1,host-{number},suite,{SHA}" for number in range(501)))
    with pytest.raises(InvalidRequestError, match="names 501 hosts"):
        read(hosts, "upload.csv")


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_that_no_date_in_utc_has_is_refused(moment: str) -> None:
    result = {
        "project": "p", "executable": "e", "benchmark": "b", "environment": "h", "commitid": SHA,
        "result_value": 1, "revision_date": moment,
    }  # fmt: skip
    with pytest.raises(InvalidRequestError, match="revision_date: expected a date and time"):
        read(json.dumps([result]).encode())
    with pytest.raises(InvalidRequestError, match="line 2, measured_at: expected a date"):
        read(f"metric,value,measured_at\ntime,1,{moment}\n".encode(), "upload.csv")


def test_numbers_whose_mean_is_too_large_are_refused() -> None:
    result = {
        "tags": {"name": "b"}, "timestamp": "2026-01-01T00:00:00Z",
        "stats": {"data": [1e308, 1e308], "unit": "s"},
    }  # fmt: skip
    with pytest.raises(
        InvalidRequestError, match="data: expected numbers whose mean can be stored"
    ):
        read(json.dumps(result).encode())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("csv", b"metric,unit,value\nlatency.p99,h,1e308\n"),
        ("github-action-benchmark", build_entries("s", range="9" * 400)),
        (
            "techempower",
            json.dumps(
                {
                    "duration": 5e-324, "concurrencyLevels": [8],
                    "rawData": {"json": {"x": [{"totalRequests": 1e308}]}},
                }
            ).encode(),
        ),
    ],
)  # fmt: skip
def test_a_value_beyond_all_numbers_is_unknown(name: str, content: bytes) -> None:
    figures = list(FORMATS[name].read(content))
    assert "inf" in {each.sentinel for each in figures}
    assert all(each.value is None or math.isfinite(each.value) for each in figures)
