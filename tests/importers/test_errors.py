"""A file that is not of its format is refused, and the error says where."""

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.registry import FORMATS, format_named

HEAD = b"metric,unit,value,case.rate\n"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("csv", b"", "line 1: the column metric is missing"),
        ("csv", b"metric,valeu\n", "line 1: the column value is missing"),
        ("csv", b"metric,value,size\n", "line 1: the column 'size' is unknown; known are"),
        ("csv", b"metric,value,value\n", "line 1: the column value occurs twice"),
        ("csv", HEAD + b"latency.p99,ms,1\n", "line 2: expected 4 cells, got 3"),
        ("csv", HEAD + b"latency.p99,ms,1,2\nx,,fast,1\n", "line 3, value: expected a number"),
        ("csv", HEAD + b"latency.p99,MB,1,2\n", "line 2, unit: latency.p99: expected the unit s"),
        ("csv", HEAD + b",ms,1,2\n", "line 2, metric: this field is missing"),
        ("csv", HEAD + b'x,"ms,1,2\n', "line 2: not CSV"),
        ("csv", b"metric,value\n\xff,1\n", "byte 13: expected text in UTF-8"),
        ("csv", b"metric,value,better\nx,1,up\n", "line 2, better: expected higher or lower"),
        ("csv", b"metric,value,measured_at\nx,1,soon\n", "line 2, measured_at: expected a date"),
        ("csv", b"metric,value,sentinel\nx,1,0\n", "line 2, sentinel: it replaces the value"),
        ("json", b"[]", "expected an object, got []"),
        ("json", b"{", "line 1, column 2: not JSON"),
        ("json", b'{"version": 2, "results": []}', "version: expected version 1, got 2"),
        ("json", b'{"version": 1}', "results: this field is missing"),
        (
            "json",
            b'{"version": 1, "results": [{"metric": "x", "value": 1}, {"metric": "x", "v": 1}]}',
            "results[1].v: this field is unknown; known are",
        ),
        (
            "json",
            b'{"version": 1, "results": [{"metric": "x", "value": 1, "parameters": {"a": []}}]}',
            "results[0].parameters.a: expected a text, a number or a boolean, got []",
        ),
        ("asv", b'{"version": 1}', "version: expected results of version 2"),
        (
            "asv",
            b'{"version": 2, "params": {}, "commit_hash": "a", "date": 1, "env_name": "e",'
            b' "result_columns": ["result", "params"], "results": {"b.time_x": [[1, 2], [["1"]]]}}',
            "results.b.time_x: expected 1 values, one for each case, got 2",
        ),
        ("bencher", b'{"hello": {"latency": {}}}', "hello.latency.value: this field is missing"),
        ("bencher", b'{"hello": {"latency": {"value": true}}}', "expected a number, got true"),
        ("codespeed", b'[{"project": "p"}]', "[0].environment: this field is missing"),
        (
            "github-action-benchmark",
            b'window.BENCHMARK_DATA = {"entries": {"A b": [{"date": 1, "commit": {"id": "x"},'
            b' "benches": [{"name": "n", "value": "fast"}]}]}}',
            'entries.A b[0].benches[0].value: expected a number, got "fast"',
        ),
        (
            "github-action-benchmark",
            b'{"entries": {"A": [{"date": 1e300, "commit": {"id": "x"}, "benches": []}]}}',
            "entries.A[0].date: expected milliseconds since 1970",
        ),
        ("hyperfine", b'{"results": [{"mean": 1}]}', "results[0].command: this field is missing"),
        ("k6", b'{"metrics": []}', "metrics: expected an object, got []"),
        ("pytest-benchmark", b'{"benchmarks": {}}', "benchmarks: expected a list, got {}"),
        (
            "techempower",
            b'{"duration": 15, "concurrencyLevels": [], "rawData": {"json": {"a": [{}]}}}',
            "rawData.json.a[0]: concurrencyLevels has 0 levels only",
        ),
        (
            "techempower",
            b'{"duration": 15, "concurrencyLevels": [1],'
            b' "rawData": {"json": {"a": [{"latencyAvg": "quick"}]}}}',
            "rawData.json.a[0].latencyAvg: expected a time such as 1.23ms",
        ),
        (
            "the-benchmarker",
            b'{"frameworks": [], "metrics": [{"level": 1, "label": "x", "framework_id": 3}]}',
            "metrics[0].framework_id: expected the id of one of the frameworks, got 3",
        ),
    ],
)
def test_import_errors_name_the_position(name: str, content: bytes, complaint: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        list(FORMATS[name].read(content))
    assert complaint in str(refused.value)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("content", [b"null", b"7", b"\x00", b'{"a": 1}', b"[" * 100_000])
def test_a_file_of_another_format_is_refused(name: str, content: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        list(FORMATS[name].read(content))


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequestError, match="the-benchmarker"):
        format_named("xml")
