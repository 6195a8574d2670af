"""A history as compact JSON with a column per property: thousands of points are a few kB.

It is formatted by hand where `json` would take longer than the database: no value here contains a
quote.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from orchestrator.histories.lines import Floats, Integers, Line, Points
from orchestrator.stats.rollup import compute_bands

#: The unit of `half_width`, in ln(high / value).
HALF_WIDTH_UNIT = 1e-4


def encode_columns(points: Points, configurations: Sequence[int]) -> dict[str, str]:
    """Return JSON texts of the columns of points.

    `configurations` are all that occur, in the order of their numbers.
    """
    band = compute_bands(points.run_count, points.mean, points.mean_log, points.m2_log)
    with np.errstate(divide="ignore", invalid="ignore"):
        half_width = np.rint(np.log(band.high / band.value) / HALF_WIDTH_UNIT)
    return {
        "at": encode_steps(points.at),
        "value": encode_significant(band.value),
        "half_width": _encode_known(half_width),
        "trials": encode_whole(points.trials),
        "suspect": encode_whole(points.suspect),
        "invalid": encode_whole(points.invalid),
        "epoch": encode_whole(points.epoch),
        "configuration": encode_whole(
            np.searchsorted(np.array(configurations, dtype=np.int64), points.configuration)
        ),
    }


def list_configurations(line: Line) -> list[int]:
    """Return all configurations in a line, in the order for `columns`."""
    return np.union1d(line.points.configuration, line.others.configuration).tolist()


def encode_significant(values: Floats) -> str:
    """Format numbers with six significant digits; null for NaN."""
    text = ("%.6g," * len(values)) % tuple(values.tolist())
    return "[" + text[:-1].replace("nan", "null") + "]"


def encode_steps(values: Integers) -> str:
    """Format the first number as it is, each other as the difference to the previous one."""
    return _encode_list(np.diff(values, prepend=0).tolist())


def encode_whole(values: Integers) -> str:
    """Format integers; a single one if all are equal."""
    same = len(values) > 0 and bool((values == values[0]).all())
    return str(int(values[0])) if same else _encode_list(values.tolist())


def encode_hashes(values: Sequence[str]) -> str:
    return '["' + '","'.join(values) + '"]' if values else "[]"


def encode_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def as_object(texts: dict[str, str]) -> str:
    """Join JSON texts to one JSON object."""
    return "{" + ",".join(f'"{key}":{text}' for key, text in texts.items()) + "}"


def _encode_known(values: Floats) -> str:
    """Format integers; null for NaN."""
    known = np.isfinite(values)
    if known.all():
        return encode_whole(values.astype(np.int64))
    integers: list[int | None] = np.where(known, values, 0).astype(np.int64).tolist()
    for index in np.flatnonzero(~known).tolist():
        integers[index] = None
    return encode_json(integers)


def _encode_list(values: list[int]) -> str:
    """Format as JSON; Python's text of a list of integers is equal, and faster to produce."""
    return repr(values).replace(" ", "")
