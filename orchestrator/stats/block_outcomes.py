"""Blocks in which a side fails: its trial says something about the code, but has no usable values.

The outcome of a trial is one of four. A trial that is void says nothing about the code. If only the
contender fails, in enough blocks, that is a verdict. If one side loses more of its blocks than the
other, the remaining blocks are a selection, and prove no equivalence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.stats import special
from orchestrator.stats.comparison import ALPHA, Verdict

#: With a larger share of excluded blocks, the others are no evidence.
MAX_EXCLUDED = 0.3
#: A side fails if it does in this many blocks; in all blocks, if there are fewer.
FEWEST_FAILURES = 3
#: The alpha of the test whether both sides lose as many blocks.
EXCLUSION_ALPHA = 0.05


class Outcome(StrEnum):
    """How a trial ended. It `counts`, it is `void`, or its server or client failed.

    - saturated: the server did not carry the load, so its values are those of a queue
    - broken: it crashed, did not build or start, or its answers are wrong
    """

    COUNTS = "counts"
    SATURATED = "saturated"
    BROKEN = "broken"
    VOID = "void"


#: The outcomes of baseline and contender in one block.
BlockPair = tuple[Outcome, Outcome]
_FAILURES = frozenset({Outcome.SATURATED, Outcome.BROKEN})


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOutcomes:
    """The outcomes of a case, over the blocks in which both sides have one.

    `verdict`: broken, saturated or fixed; None if the failures of the sides do not differ enough.
    `failures`: the number of blocks in which baseline and contender failed. `lost`: those in which
    their trials do not count, for any reason. `lost_p`: the p value of the exact test of McNemar
    whether both sides lose as many.
    """

    verdict: Verdict | None = None
    blocks: int = 0
    failures: tuple[int, int] = (0, 0)
    lost: tuple[int, int] = (0, 0)
    lost_p: float = 1.0

    @property
    def differ(self) -> bool:
        """Return whether one side loses more blocks than the other."""
        return self.lost_p < EXCLUSION_ALPHA


def judge_outcomes(pairs: Sequence[BlockPair]) -> BlockOutcomes:
    """Judge a case by the blocks in which a side fails.

    The contender is broken or saturated if it fails in at least three blocks in which the baseline
    does not, or in all blocks if there are fewer. If the baseline also fails alone in some blocks,
    a one-sided exact test of McNemar decides at `ALPHA`. Blocks with a void trial do not count.
    """
    lost = [(before is not Outcome.COUNTS, after is not Outcome.COUNTS) for before, after in pairs]
    only_before, only_after = _count_alone([pair[::-1] for pair in lost]), _count_alone(lost)
    more = max(only_before, only_after)
    return BlockOutcomes(
        verdict=_find_verdict([pair for pair in pairs if Outcome.VOID not in pair]),
        blocks=len(pairs),
        failures=(
            sum(before in _FAILURES for before, _ in pairs),
            sum(after in _FAILURES for _, after in pairs),
        ),
        lost=(sum(before for before, _ in lost), sum(after for _, after in lost)),
        lost_p=min(1.0, 2 * compute_mcnemar_p(more, only_before + only_after)),
    )


def compute_mcnemar_p(hits: int, discordant: int) -> float:
    """Return the one-sided p value of at least `hits` of the `discordant` pairs on one side."""
    return float(special.bdtrc(hits - 1, discordant, 0.5)) if hits else 1.0


def has_too_many_excluded(excluded: int, complete: int) -> bool:
    """Return whether so many blocks are excluded that the complete ones are no evidence."""
    return excluded > MAX_EXCLUDED * (excluded + complete)


def _find_verdict(pairs: Sequence[BlockPair]) -> Verdict | None:
    """Return the verdict of blocks without a void trial."""
    crashes = [(before is Outcome.BROKEN, after is Outcome.BROKEN) for before, after in pairs]
    failures = [(before in _FAILURES, after in _FAILURES) for before, after in pairs]
    if _fails_alone(crashes):
        return Verdict.BROKEN
    if _fails_alone(failures):
        return Verdict.SATURATED
    return Verdict.FIXED if _fails_alone([pair[::-1] for pair in failures]) else None


def _fails_alone(pairs: Sequence[tuple[bool, bool]]) -> bool:
    """Return whether the second side fails where the first does not."""
    alone, other = _count_alone(pairs), _count_alone([pair[::-1] for pair in pairs])
    if alone < min(FEWEST_FAILURES, max(1, len(pairs))):
        return False
    return not other or compute_mcnemar_p(alone, alone + other) < ALPHA


def _count_alone(pairs: Sequence[tuple[bool, bool]]) -> int:
    """Return in how many pairs only the second is true."""
    return sum(second and not first for first, second in pairs)
