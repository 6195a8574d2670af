"""When requests of an open load were due, told from when they really started."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

#: Bits for a request's place in a number that sorts by its start.
_POSITION_BITS = 24


class Schedule(NamedTuple):
    """`begin_ns`: when the first request was due. `due_ns`: when each was, in their own order."""

    begin_ns: int
    due_ns: array[int]


def compute_schedule(
    starts_ns: Sequence[int], skipped_ns: Sequence[int], interval_ns: float
) -> Schedule:
    """When the requests that began at `starts_ns`, one at least of them or left out, were due.

    `skipped_ns`: when the tool left a request out because it could not send it; each took its
    place in the schedule. The k-th of all is due k intervals after the first, and a tool is never
    early: the schedule begins as late as no request would start before it is due. So a delay that
    all requests of a load have in common is not seen.
    """
    due = array("q", bytes(8 * len(starts_ns)))
    zero = [*starts_ns[:1], *skipped_ns[:1]][0]
    # One number a request: millions of pairs would need three times the memory.
    marked = [(start - zero) << _POSITION_BITS | place for place, start in enumerate(starts_ns, 1)]
    marked += [(at - zero) << _POSITION_BITS for at in skipped_ns]
    marked.sort()
    begin = zero + min(
        (token >> _POSITION_BITS) - round(k * interval_ns) for k, token in enumerate(marked)
    )
    for k, token in enumerate(marked):
        place = token & ((1 << _POSITION_BITS) - 1)
        if place:
            due[place - 1] = begin + round(k * interval_ns)
    return Schedule(begin, due)
