"""JSON files of numbers for the commands `detect` and `compare-trials`.

Each fault is an InvalidRequestError with its place in the file and the fix.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.metrics import Metric, find_metric
from orchestrator.stats.comparison import Better

MARGIN = 0.03
Trials = list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFile:
    """A series along the commits, oldest first; None is a gap. `breaks` are indices."""

    values: Trials
    lower_is_better: bool
    breaks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsFile:
    """Trials of two sides: index i is block i on both; None is an excluded trial."""

    baseline: Trials
    contender: Trials
    better: Better
    margin: float


def parse_series_file(text: str) -> SeriesFile:
    """Parse `{"values": [...], "lower_is_better": true, "breaks": [40]}`, or a list of values."""
    document = _parse_json_text(text)
    if isinstance(document, list):
        document = {"values": document}
    table = _check_table(document, "", 'an object such as {"values": [10.1, 10.2]}')
    values = [_number(each, f"values[{at}]") for at, each in enumerate(_list(table, "values"))]
    breaks = tuple(
        _index(each, f"breaks[{at}]") for at, each in enumerate(_list(table, "breaks", []))
    )
    lower = _parse_flag(table, "lower_is_better", "")
    return SeriesFile(
        values=values, lower_is_better=True if lower is None else lower, breaks=breaks
    )


def parse_trials_file(text: str) -> dict[str, TrialsFile]:
    """Return the trials by metric; a file with a single unnamed metric has the empty key.

    One metric is `{"baseline": [...], "contender": [...]}` or `{"pairs": [[b, c], ...]}`. It has
    `"better"`, or `"lower_is_better"`, and `"margin"`. `"metric"`, a key of the registry, can
    replace both. Several metrics are `{"metrics": {key: {...}}}`. A bare list is a list of pairs.
    """
    document = _parse_json_text(text)
    if isinstance(document, list):
        document = {"pairs": document}
    table = _check_table(document, "", 'an object such as {"baseline": [...], "contender": [...]}')
    if "metrics" not in table:
        return {"": _parse_trials(table, "", table.get("metric"))}
    metrics = _check_table(table["metrics"], "metrics", "an object with a key for each metric")
    if not metrics:
        raise _build_file_error("metrics", "there is none: name at least one metric")
    return {
        key: _parse_trials(
            _check_table(each, f"metrics.{key}", "an object"), f"metrics.{key}.", key
        )
        for key, each in metrics.items()
    }


def _parse_trials(table: Mapping[str, Any], at: str, key: object) -> TrialsFile:
    info = _parse_metric(key, at, named="metric" in table)
    baseline, contender = _parse_sides(table, at)
    if len(baseline) != len(contender):
        raise _build_file_error(
            f"{at}contender",
            f"{len(contender)} trials, but {len(baseline)} of the baseline: each block has one of "
            "both, and an excluded trial is null",
        )
    margin = table.get("margin", info.margin if info else MARGIN)
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 < margin < 1:
        raise _build_file_error(f"{at}margin", "expected a share between 0 and 1, such as 0.03")
    return TrialsFile(
        baseline=baseline,
        contender=contender,
        better=_parse_better(table, at, info),
        margin=float(margin),
    )


def _parse_metric(key: object, at: str, *, named: bool) -> Metric | None:
    info = find_metric(key) if isinstance(key, str) else None
    if named and info is None:
        raise _build_file_error(
            f"{at}metric", f"{key!r} is not a metric of Pitwall: give better and margin"
        )
    return info


def _parse_sides(table: Mapping[str, Any], at: str) -> tuple[Trials, Trials]:
    if "pairs" not in table:
        sides = {
            side: [
                _parse_trial(each, f"{at}{side}[{place}]")
                for place, each in enumerate(_list(table, side, within=at))
            ]
            for side in ("baseline", "contender")
        }
        return sides["baseline"], sides["contender"]
    pairs = []
    for place, pair in enumerate(_list(table, "pairs", within=at)):
        where = f"{at}pairs[{place}]"
        if not isinstance(pair, list) or len(pair) != 2:
            raise _build_file_error(where, "expected [baseline, contender]")
        pairs.append([_parse_trial(each, f"{where}[{side}]") for side, each in enumerate(pair)])
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _parse_better(table: Mapping[str, Any], at: str, info: Metric | None) -> Better:
    direction = table.get("better")
    if direction is not None:
        if direction == "lower" or direction == "higher":
            return "lower" if direction == "lower" else "higher"
        raise _build_file_error(f"{at}better", f'{direction!r}: expected "lower" or "higher"')
    lower = _parse_flag(table, "lower_is_better", at)
    if lower is None:
        return info.better if info else "lower"
    return "lower" if lower else "higher"


def _parse_json_text(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequestError(
            f"line {error.lineno}, column {error.colno}: not JSON ({error.msg})"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(f"not JSON that can be read: {error}") from error


def _check_table(value: Any, at: str, expected: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _build_file_error(at or "the file", f"expected {expected}, got {_name_kind(value)}")


def _list(
    table: Mapping[str, Any], key: str, missing: list[Any] | None = None, within: str = ""
) -> list[Any]:
    value = table.get(key, missing)
    if isinstance(value, list):
        return value
    if key not in table:
        raise _build_file_error(f"{within}{key}", "it is missing: expected a list of numbers")
    raise _build_file_error(f"{within}{key}", f"expected a list, got {_name_kind(value)}")


def _parse_flag(table: Mapping[str, Any], key: str, at: str) -> bool | None:
    value = table.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise _build_file_error(f"{at}{key}", f"expected true or false, got {_name_kind(value)}")


def _index(value: Any, at: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _build_file_error(at, f"expected an index, got {_name_kind(value)}")


def _number(value: Any, at: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _build_file_error(
            at, f"expected a number, or null where there is none, got {_name_kind(value)}"
        )
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _parse_trial(value: Any, at: str) -> float | None:
    number = _number(value, at)
    if number is None or (math.isfinite(number) and number >= 0):
        return number
    raise _build_file_error(
        at, f"{number:g}: expected a finite number that is not negative, or null"
    )


def _name_kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def _build_file_error(at: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(f"{at}: {message}", field=at)
