"""Compute when the requests of an open load were due, from the times when they started."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

#: Bits for the position of a request in a number that sorts by its start.
_POSITION_BITS = 24


class Schedule(NamedTuple):
    """`begin_ns`: when the first request was due. `due_ns`: when each was due, in input order."""

    begin_ns: int
    due_ns: array[int]


def compute_schedule(
    starts_ns: Sequence[int], skipped_ns: Sequence[int], interval_ns: float
) -> Schedule:
    """Compute when the requests that started at `starts_ns` were due; needs at least one request.

    `skipped_ns`: when the tool skipped a request that it could not send; each has its position in
    the schedule. The k-th of all is due k intervals after the first. A tool never sends early: the
    schedule begins as late as possible without a request that starts before it is due. So a delay
    that is common to all requests of a load is not detected.
    """
    due = array("q", bytes(8 * len(starts_ns)))
    zero = [*starts_ns[:1], *skipped_ns[:1]][0]
    # One number a request: millions of pairs would need three times the memory.
    entries = [
        (start - zero) << _POSITION_BITS | position for position, start in enumerate(starts_ns, 1)
    ]
    entries += [(at - zero) << _POSITION_BITS for at in skipped_ns]
    entries.sort()
    begin = zero + min(
        (entry >> _POSITION_BITS) - round(k * interval_ns) for k, entry in enumerate(entries)
    )
    for k, entry in enumerate(entries):
        position = entry & ((1 << _POSITION_BITS) - 1)
        if position:
            due[position - 1] = begin + round(k * interval_ns)
    return Schedule(begin, due)
