"""The order of a job's trials: randomised complete blocks. No Django."""

import random
from collections.abc import Sequence
from typing import NamedTuple


class Slot(NamedTuple):
    """A planned trial: `case` and `variant` are indices into the input."""

    round: int
    case: int
    variant: int


def trial_order(cases: int, variants: int, rounds: int, seed: int) -> list[Slot]:
    """Return the trials of rounds 1 to `rounds`: one block per case, in random order.

    A block holds every variant once in random order, adjacent in time, so that drift of the machine
    cancels (METHODOLOGY: never all of A, then all of B). The same seed gives the same order.
    """
    chance = random.Random(seed)
    order = []
    for round_number in range(1, rounds + 1):
        for case in _shuffled(range(cases), chance):
            for variant in _shuffled(range(variants), chance):
                order.append(Slot(round_number, case, variant))
    return order


#: The target duration of a job; other jobs get the host in between.
JOB_S = 600.0


def split_cases(case_s: Sequence[float], limit_s: float = JOB_S) -> list[range]:
    """Split cases into jobs: neighbours that last at most `limit_s` together, at least one.

    `case_s`: for each case, the duration of all its trials.
    """
    parts, begin, total = [], 0, 0.0
    for at, seconds in enumerate(case_s):
        if at > begin and total + seconds > limit_s:
            parts.append(range(begin, at))
            begin, total = at, 0.0
        total += seconds
    parts.append(range(begin, len(case_s)))
    return parts


def _shuffled(items: Sequence[int], chance: random.Random) -> list[int]:
    return chance.sample(items, len(items))
