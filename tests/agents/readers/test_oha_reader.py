import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.errors import TrialFailed
from agents.hostagent.readers.oha import read

#: start, end, status, bytes
Row = tuple[float, float, int, int]


def database(path: Path, rows: Iterable[Row]) -> Path:
    """A database as oha writes it."""
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE oha (url TEXT, start REAL, start_latency_correction REAL, end REAL, "
        "duration REAL, status INTEGER, len_bytes INTEGER, run INTEGER)"
    )
    connection.executemany(
        "INSERT INTO oha VALUES ('u', ?1, NULL, ?2, ?2 - ?1, ?3, ?4, 1)", list(rows)
    )
    connection.commit()
    connection.close()
    return path


def reduce_rows(path: Path, warmup_s: float, good: tuple[int, ...] = (200,)) -> dict[str, Any]:
    """The reader's result for the database, next to a correct report."""
    report = path.with_name("tool.json")
    report.write_text("{}")
    return read(path.parent, report, path, warmup_s, good)


def test_oha_reader_drops_the_warm_up_and_separates_responses_by_status(tmp_path: Path) -> None:
    rows = [
        (0.5, 1.5, 200, 10),  # began in the warm-up
        (1.0, 1.25, 200, 10),
        (1.5, 1.75, 302, 20),
        (2.0, 2.5, 500, 40),
        (4.0, 4.25, 204, 0),
    ]
    reduced = reduce_rows(database(tmp_path / "rows", rows), 1.0, (200, 204))
    assert reduced["all"]["n"] == 5
    assert reduced["window"] == {"start_s": 1.0, "end_s": 4.25}
    assert reduced["ok"] == {"value_us": [250_000], "count": [2]}
    assert reduced["other"] == {"value_us": [250_000, 500_000], "count": [1, 1]}
    assert reduced["by_status"] == {"200": 1, "204": 1, "302": 1, "500": 1}
    assert reduced["bytes"] == 70
    assert {s["t"]: s["answered"] for s in reduced["slices"] if s["answered"]} == {0: 2, 1: 1, 3: 1}
    assert [s["ok"] for s in reduced["slices"] if s["t"] == 1] == [0]


@pytest.mark.parametrize("n", [1, 2, 3, 99, 100, 101, 1000])
def test_oha_reader_computes_the_same_percentiles_as_oha(n: int, tmp_path: Path) -> None:
    durations = [((i * 7919) % n + 1) * 1.1e-7 for i in range(n)]  # many to a microsecond
    rows = [(0.0, duration, 200, 1) for duration in durations]
    percentiles = reduce_rows(database(tmp_path / "rows", rows), 0.0)["all"]["percentiles"]
    ordered = sorted(durations)
    points = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
    assert percentiles == {f"p{point:g}": ordered[int(point / 100 * n)] for point in points}


def test_oha_reader_uses_nearest_ranks_for_slices(tmp_path: Path) -> None:
    rows = [(0.0, us / 1e6, 200, 1) for us in range(1, 201)]
    (only,) = reduce_rows(database(tmp_path / "rows", rows), 0.0)["slices"]
    assert (only["p50_us"], only["p90_us"]) == (100, 180)
    assert only["p99_us"] == 198
    assert only["max_us"] == 200


def test_oha_reader_has_no_values_without_a_response(tmp_path: Path) -> None:
    reduced = reduce_rows(database(tmp_path / "rows", []), 1.0)
    assert reduced["all"] == {"n": 0, "percentiles": {}}
    assert reduced["window"]["end_s"] is None
    assert reduced["ok"] == {"value_us": [], "count": []}
    assert reduced["slices"] == []


def test_oha_reader_refuses_a_file_that_is_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("no database at all" * 100)
    with pytest.raises(TrialFailed, match="cannot be read") as refused:
        reduce_rows(tmp_path / "rows", 0.0)
    assert refused.value.code == "output_lost"
