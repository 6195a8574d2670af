"""Charts of a trial: its loads, and the seconds of one load."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.pitwall.units import format_value
from orchestrator.measurements.distributions import LatencyCurve
from orchestrator.measurements.selectors import LoadSummary
from orchestrator.measurements.trial_files import Facts

#: Labels of the axis of percentiles.
_TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """The responses that arrived in a second, counted from the start of the window.

    `part`: `warm-up`, whose last responses may arrive after 0; `window`; `after the end`, for late
    responses to requests of the window.
    """

    t: int
    part: str
    answered: int | None
    p50_s: float | None
    p99_s: float | None


def build_loads_chart(loads: Sequence[LoadSummary]) -> dict[str, Any] | None:
    """Return latency over the offered rate, or over the concurrency if there was no rate.

    None if fewer than two loads have a latency.
    """
    offered = all(load.rate is not None for load in loads)
    points = [_build_point(load, offered) for load in loads if load.p50_s is not None]
    if len(points) < 2:
        return None
    title = "offered requests per second" if offered else "concurrent requests"
    return {"xTitle": title, "points": sorted(points, key=lambda point: point["x"])}


def build_latency_chart(curve: LatencyCurve | None) -> dict[str, Any] | None:
    """Return latency in ms at the percentiles that have enough requests; None for fewer than two.

    The horizontal axis is log10(1 / (1 - q)): each step in the tail is a decade.
    """
    known = zip(curve.percentiles, curve.seconds, strict=True) if curve else ()
    points: list[dict[str, Any]] = [
        {"x": _compute_tail(q), "y": seconds * 1e3, "label": f"p{q:g}"}
        for q, seconds in known
        if seconds is not None
    ]
    if len(points) < 2:
        return None
    ticks: list[dict[str, Any]] = [{"value": _compute_tail(q), "label": f"p{q:g}"} for q in _TICKS]
    return {
        "points": points,
        "ticks": [each for each in ticks if each["value"] <= points[-1]["x"] + 0.01],
    }


def describe_outcome(load: LoadSummary) -> str:
    """Return passed or missed for a probe with an objective, otherwise the load's validity."""
    if load.passed is not None:
        return "passed" if load.passed else "missed"
    return load.validity


def build_seconds(rows: Facts, duration_s: float | None) -> list[Second]:
    """Return the seconds of one load, its warm-up first; empty if the tool reports no times.

    `duration_s` is that of the window, None if the load counts requests.
    """
    warmup = (rows.get("warmup") or {}).get("slices") or []
    late = [duration_s is not None and each["t"] >= duration_s for each in rows.get("slices") or []]
    window = zip(rows.get("slices") or [], late, strict=True)
    return [
        *(_build_second(each, "warm-up") for each in warmup),
        *(
            _build_second(each, "after the end" if is_late else "window")
            for each, is_late in window
        ),
    ]


def build_seconds_chart(seconds: Sequence[Second]) -> dict[str, Any] | None:
    """Return chart data by whole seconds; None for fewer than two.

    Seconds with only the last responses of a part are omitted.
    """
    shown = [each for each in seconds if each.part == "window" or each.t < 0]
    if len(shown) < 2:
        return None
    return {
        "seconds": [each.t for each in shown],
        "answered": [each.answered for each in shown],
        "p50": [_convert_to_ms(each.p50_s) for each in shown],
        "p99": [_convert_to_ms(each.p99_s) for each in shown],
        "warmup": sum(each.part == "warm-up" for each in shown),
    }


def _compute_tail(percentile: float) -> float:
    return round(-math.log10(1 - percentile / 100), 6)


def _build_point(load: LoadSummary, offered: bool) -> dict[str, Any]:
    return {
        "x": load.rate if offered else load.connections * load.streams,
        "p50": _convert_to_ms(load.p50_s),
        "p99": _convert_to_ms(load.p99_s),
        "outcome": describe_outcome(load),
        "label": f"load {load.number + 1}: {describe_outcome(load)}, "
        f"{format_value(load.achieved, '1/s')} achieved",
    }


def _build_second(sample: Mapping[str, Any], part: str) -> Second:
    return Second(
        t=int(sample["t"]),
        part=part,
        answered=sample.get("answered"),
        p50_s=_convert_to_seconds(sample.get("p50_us")),
        p99_s=_convert_to_seconds(sample.get("p99_us")),
    )


def _convert_to_seconds(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _convert_to_ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
