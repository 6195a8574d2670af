"""The benchmark of scale works in its shortest form; its values are not checked."""

import numpy as np
import pytest

from perf.scale.copy_rows import (
    build_point_type,
    build_reading_ids,
    build_reading_type,
    fill_array,
    make_rows,
)
from perf.scale.extent import FULL
from tests.support.benchmarks import run_benchmark


@pytest.mark.engine
@pytest.mark.slow
def test_scale_benchmark_reports_a_value_for_every_target():
    answer = run_benchmark("scale", timeout_s=400)
    assert answer["measured"].keys() == answer["wanted"].keys()
    assert answer["measured"]["results_lost"] == answer["measured"]["results_doubled"] == 0


def test_the_largest_size_is_the_documented_one():
    size = FULL.sizes[FULL.largest]
    assert size.trials >= 10_000_000
    assert size.series >= 5_000
    assert size.all_commits >= 20_000


@pytest.mark.parametrize("kind", [build_reading_type(4, foreign=True), build_point_type(14)])
def test_rows_have_the_length_of_every_field(kind):
    row = make_rows(kind, 1).tobytes()
    fields = int.from_bytes(row[:2])
    place = 2
    for _ in range(fields):
        place += 4 + max(0, int.from_bytes(row[place : place + 4], signed=True))
    assert place == len(row)


def test_results_that_were_not_uploaded_have_no_provenance():
    row = make_rows(build_reading_type(4, foreign=False), 1)
    assert row["provenance_size"] == -1


def test_arrays_have_the_format_of_postgresql():
    rows = make_rows(build_reading_type(2, foreign=False), 1)
    fill_array(rows["values"], 701, np.array([[1.5, 2.5]]))
    assert rows["values"]["items"]["value"].tolist() == [[1.5, 2.5]]
    assert rows["values"]["count"].tolist() == [2]


def test_readings_of_a_commit_are_adjacent():
    drawn = build_reading_ids(np.array([7, 7, 8]), np.array([0, 1, 0]))
    ids = [each.tobytes().hex() for each in drawn]
    assert ids == sorted(ids)
    assert {each[12] for each in ids} == {"8"}
