"""A latency distribution that can be merged: HdrHistogram's layout, 1 µs to 1 h, 3 digits.

Values under 2,048 µs are exact. Above, the width of a counter is at most 1/1,024 of its values. Its
upper end differs by at most 0.1 %, its middle by at most 0.05 % from any value in it. Only non-zero
counters are stored, as two arrays.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.histogram_codec import decode_counts, encode_counts

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
DIGITS = 3

_HALF_BITS = 10
_HALF = 1 << _HALF_BITS
_MASK = 2 * _HALF - 1
#: Doublings of the range above the first 2,048 values, plus the first.
_BUCKETS = HIGHEST_US.bit_length() - _HALF_BITS
_SLOTS = (_BUCKETS + 1) * _HALF

Int64Array = NDArray[np.int64]


class Histogram:
    """Immutable; two are equal if all their counters are equal."""

    __slots__ = ("_count", "_index", "_running")

    def __init__(self, index: Int64Array, count: Int64Array) -> None:
        """For this module only: non-zero counters, ascending. Use `from_counts` elsewhere."""
        self._index = index
        self._count = count
        self._running = np.cumsum(count)

    @classmethod
    def from_counts(cls, value_us: Sequence[int], count: Sequence[int]) -> Self:
        """Build a histogram from whole microseconds and their counts, in any order.

        Raises ValueError for lengths that differ, a negative count, or a value outside 0 to 1 h.
        """
        values = np.asarray(value_us, dtype=np.int64)
        counts = np.asarray(count, dtype=np.int64)
        if values.shape != counts.shape or values.ndim != 1:
            raise ValueError(f"{values.size} values but {counts.size} counts")
        if values.size and (values.min() < 0 or values.max() > HIGHEST_US):
            raise ValueError(
                f"latencies from {values.min()} to {values.max()} µs: outside 0 to {HIGHEST_US}"
            )
        if counts.size and counts.min() < 0:
            raise ValueError(f"a negative count: {counts.min()}")
        return cls(*_gather(_find_slots(values), counts))

    @classmethod
    def merged(cls, histograms: Iterable["Histogram"]) -> Self:
        """Return the histogram of the union of all values, exactly; empty without histograms."""
        parts = list(histograms)
        if not parts:
            return cls.from_counts([], [])
        index = np.concatenate([part._index for part in parts])
        return cls(*_gather(index, np.concatenate([part._count for part in parts])))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the histogram that `encode` wrote; ValueError gives the fault of other bytes."""
        return cls(
            *decode_counts(data, lowest=LOWEST_US, highest=HIGHEST_US, digits=DIGITS, slots=_SLOTS)
        )

    def encode(self) -> bytes:
        """Return the raw V2 compressed encoding; every HdrHistogram library reads it as base64."""
        return encode_counts(
            self._index, self._count, lowest=LOWEST_US, highest=HIGHEST_US, digits=DIGITS
        )

    def merge(self, *others: "Histogram") -> "Histogram":
        """Return the histogram of the union of all values; exact."""
        return Histogram.merged((self, *others))

    @property
    def total_count(self) -> int:
        return int(self._running[-1]) if self._running.size else 0

    @property
    def min(self) -> float | None:
        """Return the lower end of the lowest counter, µs; None if empty."""
        return float(_compute_lowest(self._index[0])) if self._index.size else None

    @property
    def max(self) -> float | None:
        """Return the upper end of the highest counter, µs; None if empty."""
        return float(_compute_highest(self._index[-1])) if self._index.size else None

    @property
    def mean(self) -> float | None:
        """Return the mean of the middles of the counters, µs; None if empty."""
        if not self._index.size:
            return None
        return float(np.dot(_compute_middle(self._index), self._count) / self.total_count)

    def percentile(self, percentile: float) -> float:
        """Return the upper end, µs, of the counter with the value of rank ⌈percentile/100 · n⌉.

        Ranks count from 1. `percentile` is from 0 to 100; 0 is the lower end of the lowest counter.
        The semantics of HdrHistogram's getValueAtPercentile. Raises ValueError outside the range or
        if empty.
        """
        if not 0 <= percentile <= 100:
            raise ValueError(f"percentile {percentile}: expected 0 to 100")
        if not self._index.size:
            raise ValueError("an empty histogram has no percentiles")
        if percentile == 0:
            return float(_compute_lowest(self._index[0]))
        # Round first: 99.9 / 100 · 1000 is slightly more than 999 in floating point.
        rank = max(1, math.ceil(round(percentile * self.total_count / 100, 6)))
        return float(_compute_highest(self._index[np.searchsorted(self._running, rank)]))

    def percentiles(self, percentiles: Sequence[float]) -> NDArray[np.float64]:
        """Return `percentile` of each, µs; each is above 0 and at most 100."""
        return _compute_highest(self._find_indexes(percentiles)).astype(np.float64)

    def widths(self, percentiles: Sequence[float]) -> NDArray[np.float64]:
        """Return the widths of the counters of `percentiles`, µs: the resolution of the
        percentiles."""
        index = self._find_indexes(percentiles)
        return (_compute_highest(index) - _compute_lowest(index) + 1).astype(np.float64)

    def _find_indexes(self, percentiles: Sequence[float]) -> Int64Array:
        wanted = np.asarray(percentiles, dtype=np.float64)
        if not ((wanted > 0) & (wanted <= 100)).all():
            raise ValueError(f"percentiles {wanted.tolist()}: expected over 0, up to 100")
        if not self._index.size:
            raise ValueError("an empty histogram has no percentiles")
        ranks = np.ceil(np.round(wanted * self.total_count / 100, 6))
        return self._index[np.searchsorted(self._running, np.maximum(ranks, 1))]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        same_index = np.array_equal(self._index, other._index)
        return same_index and np.array_equal(self._count, other._count)

    def __hash__(self) -> int:
        return hash((self._index.tobytes(), self._count.tobytes()))

    def __repr__(self) -> str:
        return f"<Histogram of {self.total_count} values, {self.min} to {self.max} µs>"


def _gather(index: Int64Array, count: Int64Array) -> tuple[Int64Array, Int64Array]:
    # bincount adds doubles: exact unless a counter reaches 2^53.
    slots = np.bincount(index, weights=count, minlength=_SLOTS)
    filled = np.flatnonzero(slots)
    return filled, slots[filled].astype(np.int64)


def _find_slots(values: Int64Array) -> Int64Array:
    # frexp's exponent is the bit length, exact below 2^53.
    bits = np.frexp((values | _MASK).astype(np.float64))[1].astype(np.int64)
    bucket = bits - (_HALF_BITS + 1)
    return (bucket << _HALF_BITS) + (values >> bucket)


def _compute_shift(index: Int64Array) -> Int64Array:
    shift: Int64Array = np.maximum((index >> _HALF_BITS) - 1, 0)
    return shift


def _compute_lowest(index: Int64Array) -> Int64Array:
    shift = _compute_shift(index)
    return (index - (shift << _HALF_BITS)) << shift


def _compute_highest(index: Int64Array) -> Int64Array:
    return _compute_lowest(index) + (1 << _compute_shift(index)) - 1


def _compute_middle(index: Int64Array) -> Int64Array:
    return _compute_lowest(index) + ((1 << _compute_shift(index)) >> 1)
