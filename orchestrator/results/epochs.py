"""The epochs of a host: between two changes of it, its numbers are those of one machine. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """In which epochs of its host a point was measured: from `first` to `last`.

    0 is the time before the first change that is known.
    """

    first: int
    last: int


def epochs_of(times: Iterable[datetime], changes: Sequence[datetime]) -> Epochs:
    """The epochs of measurements at `times` (at least one); `changes` in the order of time."""
    found = sorted(bisect_right(changes, each) for each in times)
    return Epochs(first=found[0], last=found[-1])


def changes_between(points: Sequence[Epochs]) -> Iterator[tuple[int, int]]:
    """(place of a point, number of a change) for each change that may be why a point differs from
    the one before: some of the trials of the two were measured before it, and others after it."""
    for place, (before, after) in enumerate(pairwise(points), start=1):
        if before != after:
            first, last = min(before.first, after.first), max(before.last, after.last)
            yield from ((place, number) for number in range(first, last))
