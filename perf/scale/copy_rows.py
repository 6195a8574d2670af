"""Readings and points of a project as bytes of PostgreSQL's binary COPY, created with numpy.

All rows of one kind have the same length, so that a table of them is an array of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perf.scale.catalog import BEGAN, EVERY, Part
from perf.scale.extent import METRICS

#: The header and the trailer of a binary COPY.
HEAD = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TAIL = b"\xff\xff"
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
INT4, INT8, FLOAT8 = 23, 20, 701

READING_COLUMNS = (
    "id", "case_id", "commit_id", "at", "host_id", "validity", "metrics", "values", "provenance",
)  # fmt: skip
#: In binary form: a version, then the text.
TOLD = b'\x01{"token": "made"}'
POINT_COLUMNS = (
    "series_id", "commit_id", "epoch", "configuration", "position", "at", "trials", "suspect",
    "invalid",
    "mean", "run_count", "mean_log", "m2_log", "values", "blocks", "places", "runs", "builds",
)  # fmt: skip
#: Commits whose rows are created at once.
BATCH = 40

Rows = NDArray[Any]


def build_array_type(element: str, count: int) -> np.dtype[Any]:
    """Return a one-dimensional array type in binary form."""
    item = np.dtype([("size", ">i4"), ("value", element)])
    head = [(name, ">i4") for name in ("dimensions", "nulls", "oid", "count", "lower")]
    return np.dtype([*head, ("items", item, (count,))])


def record_type(fields: dict[str, Any]) -> np.dtype[Any]:
    """Return a row type: the number of fields, then each after its length; None: NULL."""
    parts: list[Any] = [("fields", ">i2")]
    for name, kind in fields.items():
        parts.append((f"{name}_size", ">i4"))
        if kind is not None:
            parts.append((name, kind))
    return np.dtype(parts)


def build_reading_type(metrics: int, *, foreign: bool) -> np.dtype[Any]:
    """`foreign`: the result was imported, with its provenance."""
    return record_type(
        {
            "id": "V16", "case_id": ">i8", "commit_id": ">i8", "at": ">i8", "host_id": "V16",
            "validity": "S5", "metrics": build_array_type(">i4", metrics),
            "values": build_array_type(">f8", metrics),
            "provenance": f"S{len(TOLD)}" if foreign else None,
        }
    )  # fmt: skip


def build_point_type(trials: int) -> np.dtype[Any]:
    return record_type(
        {
            "series_id": ">i8", "commit_id": ">i8", "epoch": ">i2", "configuration": ">i4",
            "position": ">i4", "at": ">i8", "trials": ">i4", "suspect": ">i4", "invalid": ">i4",
            "mean": ">f8", "run_count": ">i4", "mean_log": ">f8", "m2_log": ">f8",
            "values": build_array_type(">f8", trials), "blocks": build_array_type(">i8", trials),
            "places": build_array_type(">i4", trials), "runs": build_array_type(">i8", trials),
            "builds": build_array_type(">i4", trials),
        }
    )  # fmt: skip


def make_rows(kind: np.dtype[Any], count: int) -> Rows:
    """Return `count` rows with every length filled in and all values zero."""
    names = kind.names or ()
    sizes = [name for name in names if name.endswith("_size")]
    rows = np.zeros(count, dtype=kind)
    rows["fields"] = len(sizes)
    for size in sizes:
        name = size.removesuffix("_size")
        rows[size] = kind[name].itemsize if name in names else -1
    return rows


def fill_array(column: Rows, oid: int, values: NDArray[Any]) -> None:
    """Fill in one array per row of `values`."""
    column["dimensions"], column["oid"], column["lower"] = 1, oid, 1
    column["count"] = values.shape[1]
    column["items"]["size"] = column["items"]["value"].dtype.itemsize
    column["items"]["value"] = values


class Maker:
    """The rows of one project, in batches of its commits, oldest first.

    `blocks[commit][trial]` are the numbers of the blocks. Values are near a level of their series,
    with 2 % of noise, and an occasional step of some per cent.
    """

    def __init__(self, part: Part, metrics: list[int], blocks: NDArray[np.int64]) -> None:
        self._part = part
        self._metrics = np.array(metrics)
        self._blocks = blocks
        self._random = np.random.default_rng(part.benchmark.pk)
        levels = np.array(list(METRICS.values()))
        self._levels = levels * self._random.uniform(0.5, 2.0, (len(part.cells), 1))
        self._cases = np.array([case for case, _ in part.cells])
        hosts = b"".join(host.pk.bytes for _, host in part.cells)
        self._hosts = np.frombuffer(hosts, dtype="V16")
        self._series = np.array(part.series)

    def batches(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield readings and points of some commits."""
        oldest = len(self._part.commits) - self._part.full
        for begin, end, cells in ((0, oldest, self._part.line), (oldest, None, len(self._cases))):
            places = range(len(self._part.commits))[begin:end]
            for start in places[::BATCH] if cells else ():
                yield self._batch(np.array(range(start, min(start + BATCH, places[-1] + 1))), cells)

    def _batch(self, places: NDArray[np.int64], cells: int) -> tuple[bytes, bytes]:
        """`values[commit, cell, trial, metric]` of these commits and the first cells."""
        if self._random.random() < 0.2:
            self._levels *= self._random.uniform(0.95, 1.05, self._levels.shape)
        shape = (len(places), cells, self._part.trials, len(METRICS))
        noise = np.exp(self._random.normal(0.0, 0.02, shape))
        values = self._levels[None, :cells, None, :] * noise
        return self._readings(places, values), self._points(places, values)

    def _readings(self, places: NDArray[np.int64], values: NDArray[np.float64]) -> bytes:
        """Return the rows of Pitwall's trials, then the imported ones."""
        own = self._part.own_cells
        parts = [
            self._some_readings(places, values[:, cells], cells, foreign=foreign)
            for cells, foreign in ((slice(own), False), (slice(own, values.shape[1]), True))
            if values[:, cells].size
        ]
        return b"".join(parts)

    def _some_readings(
        self, places: NDArray[np.int64], values: NDArray[np.float64], which: slice, *, foreign: bool
    ) -> bytes:
        commits, cells, trials, metrics = values.shape
        rows = make_rows(build_reading_type(metrics, foreign=foreign), commits * cells * trials)
        ids = np.repeat(np.array(self._part.commits)[places], cells * trials)
        number = np.tile(np.arange(cells * trials), commits) + (which.start or 0) * trials
        rows["id"] = build_reading_ids(ids, number)
        rows["commit_id"] = ids
        rows["case_id"] = np.tile(np.repeat(self._cases[which][:cells], trials), commits)
        rows["host_id"] = np.tile(np.repeat(self._hosts[which][:cells], trials), commits)
        rows["at"] = np.repeat(compute_instants(places), cells * trials)
        rows["validity"] = b"valid"
        flat = values.reshape(-1, metrics)
        fill_array(rows["metrics"], INT4, np.broadcast_to(self._metrics, flat.shape))
        fill_array(rows["values"], FLOAT8, flat)
        if foreign:
            rows["provenance"] = TOLD
        return rows.tobytes()

    def _points(self, places: NDArray[np.int64], values: NDArray[np.float64]) -> bytes:
        commits, cells, trials, metrics = values.shape
        flat = values.transpose(0, 1, 3, 2).reshape(-1, trials)
        # The first half is of one run, the second of another one.
        means = np.log(flat).reshape(len(flat), 2, -1).mean(axis=2)
        rows = make_rows(build_point_type(trials), len(flat))
        each = cells * metrics
        rows["series_id"] = np.tile(self._series[:cells].ravel(), commits)
        rows["commit_id"] = np.repeat(np.array(self._part.commits)[places], each)
        rows["position"] = np.repeat(places, each)
        rows["at"] = np.repeat(compute_instants(places), each)
        rows["configuration"] = 1
        rows["trials"] = trials
        rows["mean"] = flat.mean(axis=1)
        rows["run_count"] = 2
        rows["mean_log"] = means.mean(axis=1)
        rows["m2_log"] = means.var(axis=1) * 2
        fill_array(rows["values"], FLOAT8, flat)
        fill_array(rows["blocks"], INT8, np.repeat(self._blocks[places], each, axis=0))
        fill_array(rows["places"], INT4, np.tile(build_trial_places(trials), (len(flat), 1)))
        fill_array(rows["runs"], INT8, np.tile(np.repeat([1, 2], trials // 2), (len(flat), 1)))
        fill_array(rows["builds"], INT4, np.zeros((len(flat), trials)))
        return rows.tobytes()


def build_reading_ids(commits: NDArray[np.int64], numbers: NDArray[np.int64]) -> Rows:
    """Return UUIDs of version 8 as `results.ingest` creates them: the commit first."""
    whole = np.zeros(len(commits), dtype=[("high", ">u8"), ("low", ">u8")])
    whole["high"] = commits.astype(np.uint64) << np.uint64(16) | np.uint64(0x8000)
    whole["low"] = numbers.astype(np.uint64) | np.uint64(1 << 63)
    return whole.view("V16")


def build_trial_places(trials: int) -> NDArray[np.int64]:
    """Return the places of a commit's trials in their jobs: its own run, then the next one.

    In its own run the commit is the contender, in the next one the baseline. Each round has both,
    in an order that alternates.
    """
    rounds = np.arange(1, trials // 2 + 1)
    return np.concatenate([2 * rounds - rounds % 2, 2 * rounds - 1 + rounds % 2])


def compute_instants(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the times of the commits' measurements in microseconds since 2000."""
    first = (BEGAN - EPOCH).total_seconds() * 1e6
    return (first + (places + 0.5) * EVERY.total_seconds() * 1e6).astype(np.int64)
