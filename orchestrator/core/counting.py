"""What happens in this process, counted: numbers that only grow, for whoever watches Pitwall.

Counting costs a dictionary's entry and waits for nobody. `drain` hands over what was counted since
it was last asked, so that the counts of many processes can be added up elsewhere.
"""

from bisect import bisect_left
from collections.abc import Mapping
from threading import Lock

#: Upper bounds of the classes of observed seconds; what takes longer is in the last, `+Inf`.
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
#: More names than this are a mistake; they would fill the memory of a process that never drains.
MOST_COUNTS = 20_000

#: A name with its labels in the order of their names.
Key = tuple[str, tuple[tuple[str, str], ...]]

_counts: dict[Key, float] = {}
_lock = Lock()


def count(name: str, amount: float = 1, **labels: str) -> None:
    """Adds to a counter. Labels have few values, and none that somebody typed."""
    _add({key_of(name, labels): amount})


def observe(name: str, seconds: float, **labels: str) -> None:
    """Adds to a histogram: to `name_bucket` of one class alone (`le`), and to `name_sum`."""
    at = bisect_left(BOUNDS_S, seconds)
    bound = format(BOUNDS_S[at], "g") if at < len(BOUNDS_S) else "+Inf"
    _add(
        {
            key_of(f"{name}_bucket", {**labels, "le": bound}): 1,
            key_of(f"{name}_sum", labels): seconds,
        }
    )


def key_of(name: str, labels: Mapping[str, str]) -> Key:
    return name, tuple(sorted(labels.items()))


def drain() -> dict[Key, float]:
    """What was counted since the last call; it begins at nothing again."""
    with _lock:
        counted = dict(_counts)
        _counts.clear()
    return counted


def put_back(counted: Mapping[Key, float]) -> None:
    """What was drained and could not be handed on."""
    _add(counted)


def _add(amounts: Mapping[Key, float]) -> None:
    with _lock:
        for key, amount in amounts.items():
            if key in _counts or len(_counts) < MOST_COUNTS:
                _counts[key] = _counts.get(key, 0.0) + amount
