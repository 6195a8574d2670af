"""Rows of any load tool, counted."""

import pytest

from agents.hostagent.readers.request_counter import RequestCounter, find_nearest_rank


def test_request_counter_separates_the_warm_up() -> None:
    counter = RequestCounter(2.0)
    counter.add(0.25, 0.5, 250_000, True, 200, 10)
    counter.add(1.5, 2.5, 1_000_000, False, 500, 20)  # began in the warm-up
    counter.add(2.0, 2.25, 250_000, True, 200, 40)
    rows = counter.rows_json()
    assert rows["all"] == {"n": 3, "percentiles": {}}
    assert rows["window"] == {"start_s": 2.0, "end_s": 2.25}
    assert rows["ok"] == {"value_us": [250_000], "count": [1]}
    assert rows["other"] == {"value_us": [], "count": []}
    assert rows["bytes"] == 40
    assert rows["by_status"] == {"200": 1}
    assert rows["warmup"]["n"] == 2
    seconds = [(each["t"], each["answered"], each["ok"]) for each in rows["warmup"]["slices"]]
    assert seconds == [(-2, 1, 1), (0, 1, 0)]
    assert [each["t"] for each in rows["slices"]] == [0]


def test_request_counter_counts_seconds_from_the_start_of_a_window_that_is_no_whole_second() -> (
    None
):
    counter = RequestCounter(0.5)
    for end_s in (0.25, 0.5, 1.49, 1.5):
        counter.add(end_s - 0.125, end_s, 1000, True)
    rows = counter.rows_json()
    assert [each["t"] for each in rows["slices"]] == [0, 1]
    assert [each["t"] for each in rows["warmup"]["slices"]] == [-1, 0]


def test_request_counter_reports_lengths_of_good_responses_only() -> None:
    counter = RequestCounter(0.0)
    for good, size in ((True, 12), (True, 10), (False, 5), (True, 11)):
        counter.add(0.0, 1.0, 5, good, 200, size)
    assert counter.rows_json()["length"] == {"min": 10, "max": 12}


def test_request_counter_has_no_byte_total_if_one_length_is_missing() -> None:
    counter = RequestCounter(0.0)
    counter.add(0.0, 0.5, 5, True, 200, 10)
    counter.add(0.0, 1.5, 5, True, 200)
    rows = counter.rows_json()
    assert rows["bytes"] is None
    assert rows["length"] is None
    assert [each["bytes"] for each in rows["slices"]] == [10, None]


def test_request_counter_has_no_slices_without_times_and_no_statuses_without_any() -> None:
    counter = RequestCounter(1.0)
    counter.add(None, None, 7, True, count=3)
    rows = counter.rows_json()
    assert rows["slices"] == []
    assert rows["ok"] == {"value_us": [7], "count": [3]}
    assert rows["by_status"] is None
    assert rows["window"]["end_s"] is None


def test_request_counter_counts_grouped_rows_like_single_rows() -> None:
    one_by_one, at_once = RequestCounter(0.0), RequestCounter(0.0)
    for _ in range(4):
        one_by_one.add(0.25, 1.25, 9.6, True, 200, 3)
    at_once.add(0.25, 1.25, 9.6, True, 200, 3, count=4)
    assert one_by_one.rows_json() == at_once.rows_json()
    assert at_once.rows_json()["ok"] == {"value_us": [10], "count": [4]}


def test_request_counter_distinguishes_no_errors_from_unknown_errors() -> None:
    counter = RequestCounter(0.0)
    assert counter.rows_json()["errors"] is None
    counter.reports_errors()
    assert counter.rows_json()["errors"] == {}
    counter.fail("timeout")
    counter.fail("other", "boom", 2)
    counter.fail("other", "boom")
    rows = counter.rows_json()
    assert rows["errors"] == {"timeout": 1, "other": 3}
    assert rows["error_texts"] == {"other": ["boom"]}


def test_request_counter_keeps_few_and_short_texts() -> None:
    counter = RequestCounter(0.0)
    for n in range(100):
        counter.fail("other", f"{n}" + "x" * 1000)
    (texts,) = counter.rows_json()["error_texts"].values()
    assert len(texts) == 20
    assert {len(text) for text in texts} == {300}


@pytest.mark.parametrize(
    ("percentile", "rank"), [(50, 500), (99, 990), (99.9, 999), (99.99, 1000), (100, 1000)]
)
def test_request_counter_uses_nearest_ranks(percentile: float, rank: int) -> None:
    pairs = [(value, 1) for value in range(1, 1001)]
    assert find_nearest_rank(pairs, 1000, percentile) == rank
