"""The order of a job's trials: randomised complete blocks. No Django."""

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One trial to come: `case` and `variant` are indices into what was given."""

    round: int
    case: int
    variant: int


def trial_order(cases: int, variants: int, rounds: int, seed: int) -> list[Slot]:
    """Rounds 1 to `rounds`; in each, one block a case in random order, variants random inside.

    A block holds every variant once, adjacent in time, so that drift of the machine cancels
    (METHODOLOGY: never all of A, then all of B). The same seed gives the same order.
    """
    chance = random.Random(seed)
    order = []
    for round_number in range(1, rounds + 1):
        for case in _shuffled(range(cases), chance):
            for variant in _shuffled(range(variants), chance):
                order.append(Slot(round=round_number, case=case, variant=variant))
    return order


def _shuffled(items: Sequence[int], chance: random.Random) -> list[int]:
    return chance.sample(items, len(items))
