"""When a comparison may be looked at: planned, so that looking often does not make it wrong."""

from orchestrator.stats.comparison import Comparison, Verdict

#: Clean blocks at which a verdict may be reached. With the default alphas of `compare_blocks` the
#: false positives of all looks together stay under 0.042, the false equivalences under 0.040.
LOOKS = (5, 7, 10, 15, 20)


def next_look(comparison: Comparison, looks: tuple[int, ...] = LOOKS) -> int | None:
    """Blocks in all to measure before the next look; None where measuring may stop.

    It may stop when a verdict is reached that is not fragile, or when no look is left.
    """
    decided = comparison.verdict is not Verdict.INCONCLUSIVE and not comparison.fragile
    if decided:
        return None
    return next((look for look in looks if look > comparison.blocks), None)


def is_look(blocks: int, looks: tuple[int, ...] = LOOKS) -> bool:
    """Whether a verdict on this many clean blocks was planned."""
    return blocks in looks
