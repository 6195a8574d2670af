import json

import pytest

from agents.hostagent.errors import TrialFailed
from agents.hostagent.readers.h2load import read, shorten


def read_rows(folder, log, stdout="all is said\n"):
    (folder / "rows.raw").write_text(log)
    (folder / "tool.stdout").write_text(stdout)
    return read(folder, folder / "tool.json", folder / "rows.raw", 0.0)


def test_times_count_from_the_first_request(tmp_path):
    # In the order of ends: the first to start was slow.
    log = "1700000000000500\t200\t100\n1700000001200000\t503\t20\n1700000000000000\t200\t1500000\n"
    rows = read_rows(tmp_path, log)
    assert rows["ok"] == {"value_us": [100, 1_500_000], "count": [1, 1]}
    assert rows["other"] == {"value_us": [20], "count": [1]}
    assert rows["by_status"] == {"200": 2, "503": 1}
    assert rows["window"] == {"start_s": 0.0, "end_s": 1.5}
    assert [(each["t"], each["answered"]) for each in rows["slices"]] == [(0, 1), (1, 2)]
    assert rows["errors"] is None
    assert rows["bytes"] is None


def test_failed_streams_are_not_responses(tmp_path):
    rows = read_rows(tmp_path, "1700000000000000\t200\t10\n1700000000000000\t-1\t20\n")
    assert rows["all"]["n"] == 1
    kept = json.loads((tmp_path / "tool.json").read_text())
    assert kept == {"stdout": "all is said\n", "logged": {"answered": 1, "failed": 1}}


def test_no_response_at_all_is_read(tmp_path):
    rows = read_rows(tmp_path, "")
    assert rows["all"]["n"] == 0
    assert rows["window"]["end_s"] is None


@pytest.mark.parametrize("last", ["17000", "1700000000000000\t200\t1", "a\tb\tc\n", "\n"])
def test_a_log_that_is_cut_off_names_the_line(last, tmp_path):
    with pytest.raises(TrialFailed, match="line 2 of h2load's log is incomplete") as failed:
        read_rows(tmp_path, "1700000000000000\t200\t10\n" + last)
    assert failed.value.code == "output_lost"


def test_a_missing_log_is_a_lost_output(tmp_path):
    with pytest.raises(TrialFailed, match="left no log"):
        read(tmp_path, tmp_path / "tool.json", tmp_path / "rows.raw", 0.0)


def test_a_long_text_keeps_both_ends():
    text = shorten("first" + "x" * 100_000 + "last")
    assert text.startswith("first")
    assert text.endswith("last")
    assert len(text) < 33_000
