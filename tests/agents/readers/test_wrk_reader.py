"""What wrk made of latencies, and what they were."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.hostagent.errors import TrialFailed
from agents.hostagent.readers.wrk import read, remove_corrections


def corrected(counts, expected):
    """`stats_correct` of wrk 4.1.0, line by line."""
    data = Counter(counts)
    for n in range(expected * 2, max(data) + 1):
        count = data[n]
        m = n - expected
        while count and m > expected:
            data[m] += count
            m -= expected
    return {us: count for us, count in data.items() if count}


@given(
    st.dictionaries(st.integers(1, 600), st.integers(1, 5), min_size=1, max_size=40),
    st.integers(1, 300),
)
def test_the_correction_of_wrk_is_removed(counts, expected):
    assert remove_corrections(corrected(counts, expected), expected) == counts


def test_latencies_without_the_correction_of_wrk_stay():
    counts = {100: 1, 1000: 5}
    assert remove_corrections(counts, 100) == counts


def test_no_interval_means_no_correction():
    assert remove_corrections({5: 1}, 0) == {5: 1}


REPORT = {
    "requests": 3,
    "duration_us": 900_000,
    "bytes": 300,
    "connections": 1,
    "errors": {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0},
    "value_us": [100, 200],
    "count": [2, 1],
}


def read_rows(folder, **changes):
    out = folder / "tool.json"
    out.write_text(json.dumps({**REPORT, **changes}))
    return read(folder, out, folder / "rows.raw", 0.0)


def test_the_whole_distribution_is_kept_and_the_report_is_shortened(tmp_path):
    rows = read_rows(tmp_path)
    assert rows["ok"] == {"value_us": [100, 200], "count": [2, 1]}
    assert rows["errors"] == {}
    assert rows["by_status"] is None
    assert rows["slices"] == []
    assert json.loads((tmp_path / "tool.json").read_text()) == {
        **{name: REPORT[name] for name in REPORT if name not in ("value_us", "count")},
        "added": 0,
    }


def test_errors_are_counted_by_class(tmp_path):
    errors = {"connect": 1, "read": 2, "write": 3, "status": 0, "timeout": 4}
    assert read_rows(tmp_path, errors=errors)["errors"] == {"connect": 1, "broken": 5, "timeout": 4}


def test_responses_cannot_be_called_good_if_some_were_bad(tmp_path):
    rows = read_rows(tmp_path, errors={**REPORT["errors"], "status": 1})
    assert rows["ok"]["count"] == []
    assert rows["other"]["count"] == [2, 1]


def test_no_response_at_all_is_read(tmp_path):
    rows = read_rows(tmp_path, requests=0, value_us=[], count=[])
    assert rows["all"]["n"] == 0
    assert rows["by_status"] == {}


def test_a_truncated_report_is_a_failure(tmp_path):
    out = tmp_path / "tool.json"
    out.write_text(json.dumps(REPORT)[:-20])
    with pytest.raises(TrialFailed, match="incomplete"):
        read(tmp_path, out, tmp_path / "rows.raw", 0.0)


def test_a_missing_report_is_reported_with_its_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"tool\.json"):
        read(tmp_path, tmp_path / "tool.json", tmp_path / "rows.raw", 0.0)
