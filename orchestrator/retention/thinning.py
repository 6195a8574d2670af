"""Which commits of a long history stay when old ones are thinned out. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A measured commit: its number along the default branch, None elsewhere."""

    commit: int
    position: int | None
    parents: int = 1


def spare(
    line: Sequence[Place],
    *,
    every: int,
    old: Collection[int],
    kept: Collection[int] = (),
    changes: Collection[int] = (),
) -> tuple[int, ...]:
    """The commits whose points may go: `old`, and of no further use.

    `line`: the measured commits in their order. Each whose position is a multiple of `every`
    stays, so that the answer is the same however often one asks; so do merges, commits of other
    branches, those that are `kept`, the first and the last, and the neighbours of `changes` (the
    first commits of new levels), two to each side.
    """
    stays = {*kept, *_around(line, changes)}
    stays.update(place.commit for place in (*line[:1], *line[-1:]))
    return tuple(
        place.commit
        for place in line
        if place.commit in old
        and place.commit not in stays
        and place.position is not None
        and place.position % every
        and place.parents < 2
    )


#: A level is known by what stands on each side of its edge.
_NEIGHBOURS = 2


def _around(line: Sequence[Place], changes: Collection[int]) -> set[int]:
    found: set[int] = set()
    for number, place in enumerate(line):
        if place.commit in changes:
            near = line[max(0, number - _NEIGHBOURS) : number + _NEIGHBOURS]
            found.update(each.commit for each in near)
    return found
