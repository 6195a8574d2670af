"""Select the commits of a long history that stay when old ones are thinned out. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A measured commit: its number along the default branch, None elsewhere."""

    commit: int
    position: int | None
    parents: int = 1


def select_spare(
    line: Sequence[Place],
    *,
    every: int,
    old: Collection[int],
    kept: Collection[int] = (),
    changes: Collection[int] = (),
) -> tuple[int, ...]:
    """Return the commits of `old` whose points may be deleted.

    `line`: the measured commits in order. Each one whose position is a multiple of `every` stays,
    so that the result does not depend on how often it is computed. Merges, commits of other
    branches, those in `kept`, the first and the last stay as well. So do two neighbours on each
    side of each of the `changes` (the first commits of new levels).
    """
    stays = {*kept, *_list_neighbours(line, changes)}
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


#: The commits on each side of an edge define its levels.
_NEIGHBOURS = 2


def _list_neighbours(line: Sequence[Place], changes: Collection[int]) -> set[int]:
    neighbours: set[int] = set()
    for number, place in enumerate(line):
        if place.commit in changes:
            near = line[max(0, number - _NEIGHBOURS) : number + _NEIGHBOURS]
            neighbours.update(each.commit for each in near)
    return neighbours
