"""The order of a job's trials, and the builds that its rounds measure. Pure.

A run that builds each commit once uses the build that the host keeps. With more, it makes new ones.
Rounds 1 and 2 measure the first build, rounds 3 and 4 the second, and so on. So each build has both
orders of the trials.
"""

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple, TypeVar

from orchestrator.benchmarks.contests import ContestKey, get_contest_key
from orchestrator.benchmarks.matrix import CaseSpec
from orchestrator.benchmarks.spec import MAX_BUILDS, Spec

#: The number of the build that a host keeps for all runs.
KEPT_BUILD = 0
_ROUNDS_OF_A_BUILD = 2

Item = TypeVar("Item")


class Slot(NamedTuple):
    """A planned trial: `case` and `variant` are indices into the input."""

    round: int
    case: int
    variant: int


def group_cases(spec: Spec, cases: Sequence[CaseSpec]) -> list[list[int]]:
    """Return the indices of the cases of each contest, in the order of the cases.

    Without a contest axis, each case is a group of its own.
    """
    if spec.contest is None:
        return [[place] for place in range(len(cases))]
    groups: dict[ContestKey, list[int]] = {}
    for place, case in enumerate(cases):
        groups.setdefault(get_contest_key(spec.contest, case.parameters), []).append(place)
    return list(groups.values())


def order_trials(
    cases: int,
    variants: int,
    rounds: int,
    seed: int,
    *,
    contests: Sequence[Sequence[int]] = (),
) -> list[Slot]:
    """Return the trials of rounds 1 to `rounds`: one block per case, in random order.

    A block holds every variant once, adjacent in time, so that drift of the machine cancels
    (METHODOLOGY: never all of A, then all of B). Round 2 of a case mirrors round 1, round 4 mirrors
    round 3, and so on. The orders of a case are a random Williams design (Williams 1949): in 2
    rounds each variant precedes each other one once. In as many rounds as there are variants
    (twice as many, for an odd number) each variant has each place equally often.

    `contests`: groups of all cases; by default each is its own. The blocks of a contest are
    adjacent in time too, and the orders of its cases are another such design.

    The same seed gives the same order. More rounds do not change the earlier ones.
    """
    chance = random.Random(seed)
    groups = contests or [[case] for case in range(cases)]
    blocks = [_iterate_blocks(variants, chance) for _ in range(cases)]
    orders = [_iterate_blocks(len(group), chance) for group in groups]
    return [
        Slot(number, groups[group][member], variant)
        for number in range(1, rounds + 1)
        for group in _shuffle_items(range(len(groups)), chance)
        for member in next(orders[group])
        for variant in next(blocks[groups[group][member]])
    ]


def number_build(round_number: int, builds: int) -> int:
    """Return the number of the build that a round measures, from 1; KEPT_BUILD if there is one."""
    if builds == 1:
        return KEPT_BUILD
    return (round_number - 1) // _ROUNDS_OF_A_BUILD % builds + 1


def count_usable_builds(rounds: int) -> int:
    """Return the most builds that so many rounds can measure."""
    return min(MAX_BUILDS, -(-rounds // _ROUNDS_OF_A_BUILD))


def _iterate_blocks(variants: int, chance: random.Random) -> Iterator[Sequence[int]]:
    """Yield the order of the variants in each round of a case, without end."""
    if variants == 1:
        yield from repeat((0,))
    while True:
        names = _shuffle_items(range(variants), chance)
        for row in _shuffle_items(_build_half_design(variants), chance):
            block = [names[place] for place in row]
            yield block
            yield block[::-1]


@lru_cache(maxsize=16)
def _build_half_design(variants: int) -> tuple[tuple[int, ...], ...]:
    """Return the rows of a Williams design without those that mirror another one."""
    zigzag = [(place + 1) // 2 * (-1) ** (place % 2) for place in range(variants)]
    rows = variants // 2 if variants % 2 == 0 else variants
    return tuple(tuple((step + row) % variants for step in zigzag) for row in range(rows))


def _shuffle_items(items: Sequence[Item], chance: random.Random) -> list[Item]:
    return chance.sample(items, len(items))
