import json
import re
from pathlib import Path

import pytest

from agents.hostagent.errors import TrialFailed
from agents.hostagent.paths import build_stdout_path
from agents.hostagent.readers.script import read

PAGE = Path(__file__).parents[3] / "docs" / "script-tool.md"
DONE = '{"type": "done"}'


def read_rows(folder, *lines, warmup_s=0.0):
    out = folder / "tool.json"
    build_stdout_path(out).write_text("".join(f"{line}\n" for line in lines))
    return read(folder, out, folder / "rows.raw", warmup_s)


def test_script_reader_reads_the_lines_of_the_documentation(tmp_path):
    (block,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    rows = read_rows(tmp_path, *block.splitlines())
    assert rows["ok"] == {"value_us": [840, 842], "count": [3, 2]}
    assert rows["by_status"] == {"200": 5}
    assert rows["errors"] == {"timeout": 3}
    assert rows["error_texts"] == {"timeout": ["no answer within 10 s"]}
    assert rows["tool_metrics"] == {"script.upload_s": 1.5}
    assert rows["protocol"] == "h2"
    assert json.loads((tmp_path / "tool.json").read_text()) == {"lines": 6, "ended_s": None}


def test_requests_of_the_warm_up_are_counted_separately(tmp_path):
    rows = read_rows(
        tmp_path,
        '{"type": "request", "start_s": 0.9, "latency_us": 500000, "ok": true, "bytes": 5}',
        '{"type": "request", "start_s": 1.0, "latency_us": 500000, "ok": true, "bytes": 7}',
        '{"type": "request", "start_s": 2.7, "latency_us": 500000, "ok": false, "bytes": 9}',
        DONE,
        warmup_s=1.0,
    )
    assert rows["warmup"]["n"] == 1
    assert rows["window"] == {"start_s": 1.0, "end_s": 3.2}
    assert rows["ok"]["count"] == rows["other"]["count"] == [1]
    assert rows["bytes"] == 16
    assert [each["t"] for each in rows["slices"]] == [0, 2]


def test_empty_lines_are_skipped_and_errors_stay_unknown(tmp_path):
    rows = read_rows(tmp_path, "", DONE, "")
    assert rows["errors"] == {}
    assert rows["all"]["n"] == 0


def test_script_reader_reports_how_it_counts(tmp_path):
    rows = read_rows(tmp_path, '{"type": "done", "ended_s": 2.5, "corrected": true}')
    assert rows["corrected"] is True
    assert json.loads((tmp_path / "tool.json").read_text())["ended_s"] == 2.5


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("hello", "not JSON"),
        ('{"type": "request"', "not JSON"),
        ("[1]", "not an object"),
        ("5", "not an object"),
        ("{}", "its type is None"),
        ('{"type": ["done"]}', "its type is"),
        ('{"type": "sample"}', "its type is 'sample', expected one of request"),
        ('{"type": "request", "ok": true}', "latency_us is None"),
        ('{"type": "request", "latency_us": -1, "ok": true}', "a latency is -1"),
        ('{"type": "request", "latency_us": 1e12, "ok": true}', "expected microseconds"),
        ('{"type": "request", "latency_us": NaN, "ok": true}', "latency_us is nan"),
        ('{"type": "request", "latency_us": true, "ok": true}', "latency_us is True"),
        ('{"type": "request", "latency_us": 1}', "ok is None"),
        ('{"type": "request", "latency_us": 1, "ok": 1}', "ok is 1"),
        ('{"type": "request", "latency_us": 1, "ok": true, "start_s": -1}', "start_s is -1"),
        ('{"type": "request", "latency_us": 1, "ok": true, "bytes": 1.5}', "bytes is 1.5"),
        ('{"type": "request", "latency_us": 1, "ok": true, "status": [2]}', "status is"),
        ('{"type": "latencies", "value_us": [1]}', "have to be lists"),
        ('{"type": "latencies", "value_us": [1, 2], "count": [1]}', "2 entries and count 1"),
        ('{"type": "latencies", "value_us": [1], "count": [-1]}', "count is -1"),
        ('{"type": "error"}', "class is None"),
        ('{"type": "error", "class": "Time Out"}', "class is 'Time Out'"),
        ('{"type": "error", "class": "a", "count": 0.5}', "count is 0.5"),
        ('{"type": "error", "class": "a", "text": 5}', "text is 5"),
        ('{"type": "reading", "value": 1}', "metric is None"),
        ('{"type": "reading", "metric": "script.a_s", "value": "1"}', "value is '1'"),
        ('{"type": "reading", "metric": "script.a_s", "value": Infinity}', "value is inf"),
        ('{"type": "protocol", "spoken": "http/1.1"}', "expected one of h1, h2, h3, grpc"),
        ('{"type": "done", "ended_s": "soon"}', "ended_s is 'soon'"),
        ('{"type": "done", "corrected": 1}', "corrected is 1"),
    ],
)
def test_an_invalid_line_is_named(line, why, tmp_path):
    with pytest.raises(TrialFailed) as failed:
        read_rows(tmp_path, '{"type": "protocol", "spoken": "h1"}', "", line, DONE)
    assert failed.value.code == "tool_failed"
    assert failed.value.message.startswith("line 3 of the script's output: ")
    assert why in failed.value.message
    assert repr(line)[1:-1] in failed.value.message


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((DONE, '{"type": "error", "class": "a"}'), "line 2 .*after the line of type done"),
        (
            ('{"type": "reading", "metric": "script.a_s", "value": 1}',) * 2,
            "line 2 .*reported before",
        ),
        (
            ('{"type": "protocol", "spoken": "h1"}', '{"type": "protocol", "spoken": "h2"}'),
            "line 2 .*was h1 before",
        ),
        ((), "it is empty"),
        (('{"type": "error", "class": "a"}',), "incomplete; line 1 is the last"),
    ],
)
def test_inconsistent_lines_are_refused(lines, why, tmp_path):
    with pytest.raises(TrialFailed, match=why):
        read_rows(tmp_path, *lines)


def test_a_long_line_is_not_shown_whole(tmp_path):
    with pytest.raises(TrialFailed) as failed:
        read_rows(tmp_path, "x" * 10_000)
    assert len(failed.value.message) < 300


def test_a_missing_stdout_is_reported_with_its_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"tool\.stdout"):
        read(tmp_path, tmp_path / "tool.json", tmp_path / "rows.raw", 0.0)
