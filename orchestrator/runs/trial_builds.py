"""The builds of a run: which of them each round measures. Pure.

A run that builds each commit once uses the build that the host keeps. With more, it makes new ones.
Rounds 1 and 2 measure the first build, rounds 3 and 4 the second, and so on. So each build has both
orders of the trials (`trial_order`).
"""

from orchestrator.benchmarks.spec import MAX_BUILDS

#: The number of the build that a host keeps for all runs.
KEPT_BUILD = 0
_ROUNDS_OF_A_BUILD = 2


def number_build(round_number: int, builds: int) -> int:
    """Return the number of the build that a round measures, from 1; KEPT_BUILD if there is one."""
    if builds == 1:
        return KEPT_BUILD
    return (round_number - 1) // _ROUNDS_OF_A_BUILD % builds + 1


def count_usable_builds(rounds: int) -> int:
    """Return the most builds that so many rounds can measure."""
    return min(MAX_BUILDS, -(-rounds // _ROUNDS_OF_A_BUILD))
