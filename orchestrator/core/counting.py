"""Counters and histograms of this process for monitoring; their values only grow.

To count is one update of a dictionary under a lock. `drain` returns the counts since its last call,
so that the counts of many processes can be added up elsewhere.
"""

from bisect import bisect_left
from collections.abc import Mapping
from threading import Lock

#: Upper bounds of the buckets in seconds; longer times go to the last bucket, `+Inf`.
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
#: More names are a mistake: they would fill the memory of a process that never drains.
MOST_COUNTS = 20_000

#: A name with its labels, sorted by name.
Key = tuple[str, tuple[tuple[str, str], ...]]

_counts: dict[Key, float] = {}
_lock = Lock()


def count(name: str, amount: float = 1, **labels: str) -> None:
    """Add to a counter. Labels must have few values and never contain user input."""
    _add({build_key(name, labels): amount})


def observe(name: str, seconds: float, **labels: str) -> None:
    """Add to a histogram: to `name_bucket` of one bucket (`le`, not cumulative) and `name_sum`."""
    at = bisect_left(BOUNDS_S, seconds)
    bound = format(BOUNDS_S[at], "g") if at < len(BOUNDS_S) else "+Inf"
    _add(
        {
            build_key(f"{name}_bucket", {**labels, "le": bound}): 1,
            build_key(f"{name}_sum", labels): seconds,
        }
    )


def build_key(name: str, labels: Mapping[str, str]) -> Key:
    return name, tuple(sorted(labels.items()))


def drain() -> dict[Key, float]:
    """Return the counts since the last call, and reset them to zero."""
    with _lock:
        counted = dict(_counts)
        _counts.clear()
    return counted


def restore_counts(counted: Mapping[Key, float]) -> None:
    """Add drained counts again that could not be passed on."""
    _add(counted)


def _add(amounts: Mapping[Key, float]) -> None:
    with _lock:
        for key, amount in amounts.items():
            if key in _counts or len(_counts) < MOST_COUNTS:
                _counts[key] = _counts.get(key, 0.0) + amount
