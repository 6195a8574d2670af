"""Counts requests for rows.json (protocol.py); all readers use it.

    counter = RequestCounter(warmup_s)
    for row in …:
        counter.add(start_s, end_s, latency_us, good, status=200, size=13)    # with a response
    counter.fail("refused", "connection refused")                             # without one
    rows = counter.rows_json(percentiles={…}, protocol="h2")

It stores counts of distinct values and no rows, so that millions of rows need little memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Optional, Union

from ..protocol import SCHEMA

TEXTS_KEPT = 20
TEXT_CHARS = 300


class _Second:
    """The requests that ended in one second."""

    __slots__ = ("answered", "counts", "ok", "size")

    def __init__(self) -> None:
        self.answered = 0
        self.ok = 0
        self.size: Optional[int] = 0
        self.counts: dict[int, int] = {}


class RequestCounter:
    """Counts requests by latency, status and second, and those of the warm-up separately."""

    def __init__(self, warmup_s: float) -> None:
        """A request that starts before `warmup_s` after the load's start is warm-up."""
        self._warmup_s = warmup_s
        self._n = 0
        self._end_s: Optional[float] = None
        self._ok: dict[int, int] = {}
        self._other: dict[int, int] = {}
        self._by_status: dict[str, int] = {}
        self._size: Optional[int] = 0
        self._lengths: Optional[tuple[int, int]] = None
        self._seconds: dict[int, _Second] = {}
        self._warmup_n = 0
        self._warmup: dict[int, _Second] = {}
        self._errors: Optional[dict[str, int]] = None
        self._texts: dict[str, list[str]] = {}

    def add(
        self,
        start_s: Optional[float],
        end_s: Optional[float],
        latency_us: float,
        good: bool,
        status: Optional[Union[int, str]] = None,
        size: Optional[int] = None,
        *,
        count: int = 1,
    ) -> None:
        """Add `count` equal requests with a response.

        Times are seconds since the load's start, or None if the tool reports none: such a request
        counts for the window and is in no slice. `good`: succeeded. `size`: bytes of one body.
        """
        in_window = start_s is None or start_s >= self._warmup_s
        self._n += count
        us = round(latency_us)
        if end_s is not None:
            self._add_second(end_s, in_window, us, good, size, count)
        if not in_window:
            self._warmup_n += count
            return
        values = self._ok if good else self._other
        values[us] = values.get(us, 0) + count
        if status is not None:
            key = str(status)
            self._by_status[key] = self._by_status.get(key, 0) + count
        self._size = _add_sizes(self._size, size, count)
        if good and size is not None:
            low, high = self._lengths or (size, size)
            self._lengths = (min(low, size), max(high, size))
        if end_s is not None and (self._end_s is None or end_s > self._end_s):
            self._end_s = end_s

    def _add_second(
        self, end_s: float, in_window: bool, us: int, good: bool, size: Optional[int], count: int
    ) -> None:
        t = math.floor(end_s - self._warmup_s)
        seconds = self._seconds if in_window else self._warmup
        second = seconds.get(t)
        if second is None:
            second = seconds[t] = _Second()
        second.answered += count
        second.ok += count if good else 0
        second.size = _add_sizes(second.size, size, count)
        second.counts[us] = second.counts.get(us, 0) + count

    def fail(self, kind: str, text: str = "", count: int = 1) -> None:
        """Add `count` requests without a response, of the class `kind`, with the tool's message."""
        self.reports_errors()
        assert self._errors is not None
        self._errors[kind] = self._errors.get(kind, 0) + count
        texts = self._texts.setdefault(kind, [])
        short = text[:TEXT_CHARS]
        if short and short not in texts and len(texts) < TEXTS_KEPT:
            texts.append(short)

    def reports_errors(self) -> None:
        """The rows contain every error: without one there was none."""
        if self._errors is None:
            self._errors = {}

    def rows_json(
        self,
        *,
        n: Optional[int] = None,
        percentiles: Optional[Mapping[str, float]] = None,
        protocol: Optional[str] = None,
        corrected: bool = False,
        tool_metrics: Optional[Mapping[str, float]] = None,
    ) -> dict[str, Any]:
        """Return the content of rows.json.

        `n`: rows of the whole load, if it differs from the number of added ones. `percentiles`:
        {"p99": s} of all rows, as the tool defines them.
        """
        return {
            "schema": SCHEMA,
            "all": {"n": self._n if n is None else n, "percentiles": dict(percentiles or {})},
            "window": {"start_s": self._warmup_s, "end_s": self._end_s},
            "ok": _build_distribution(self._ok),
            "other": _build_distribution(self._other),
            "by_status": dict(sorted(self._by_status.items())) or self._empty_statuses(),
            "bytes": self._size,
            "length": self._length(),
            "warmup": {"n": self._warmup_n, "slices": _build_slices(self._warmup)},
            "slices": _build_slices(self._seconds),
            "errors": self._errors,
            "error_texts": {kind: texts for kind, texts in self._texts.items() if texts},
            "protocol": protocol,
            "corrected": corrected,
            "tool_metrics": dict(tool_metrics or {}),
        }

    def _empty_statuses(self) -> Optional[dict[str, int]]:
        """Return statuses without responses: unknown (None), unless there was no response."""
        return None if self._ok or self._other else {}

    def _length(self) -> Optional[dict[str, int]]:
        if self._size is None or self._lengths is None:
            return None
        return {"min": self._lengths[0], "max": self._lengths[1]}


def _add_sizes(total: Optional[int], size: Optional[int], count: int) -> Optional[int]:
    """Return the sum; None if one is unknown."""
    return None if total is None or size is None else total + size * count


def _build_distribution(values: Mapping[int, int]) -> dict[str, list[int]]:
    ordered = sorted(values)
    return {"value_us": ordered, "count": [values[us] for us in ordered]}


def _build_slices(seconds: Mapping[int, _Second]) -> list[dict[str, Any]]:
    return [_build_slice(t, seconds[t]) for t in sorted(seconds)]


def _build_slice(t: int, second: _Second) -> dict[str, Any]:
    pairs = sorted(second.counts.items())
    return {
        "t": t,
        "answered": second.answered,
        "ok": second.ok,
        "bytes": second.size,
        "p50_us": find_nearest_rank(pairs, second.answered, 50),
        "p90_us": find_nearest_rank(pairs, second.answered, 90),
        "p99_us": find_nearest_rank(pairs, second.answered, 99),
        "max_us": pairs[-1][0],
    }


def find_nearest_rank(pairs: list[tuple[int, int]], n: int, percentile: float) -> Optional[int]:
    """Return the value at rank ceil(percentile/100 · n) of `n` in (value, count) pairs in order."""
    # The product is rounded first: 99.9 % of 1000 is rank 999, not the 1000 of floating point.
    left = max(1, math.ceil(round(percentile * n / 100, 6)))
    for value, count in pairs:
        left -= count
        if left <= 0:
            return value
    return None
