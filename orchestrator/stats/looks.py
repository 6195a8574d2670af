"""When a comparison may be looked at: planned, so that looking often does not make it wrong."""

from orchestrator.stats.comparison import Comparison, Verdict

#: Clean blocks at which a verdict may be reached.
LOOKS = (5, 7, 10, 15, 20)
#: What one look may spend, so that all of them together see a change that is not there in less
#: than 0.05. Simulated (tests/stats/test_stopping_rule.py): 0.015 a look adds up to 0.052 where the
#: noise is so large that nothing else ends a case; 0.0125 to 0.044.
ALPHA = 0.0125
#: The same for calling equivalent what differs by the margin: all together less than 0.05.
EQUIVALENCE_ALPHA = 0.02
#: A p value of the last of several looks counts so many times where it stands among others.
PENALTY = 4.0


def next_look(comparison: Comparison, looks: tuple[int, ...] = LOOKS) -> int | None:
    """Blocks in all to measure before the next look; None where measuring may stop.

    It may stop when a verdict is reached that is not fragile, or when no look is left.
    """
    decided = comparison.verdict is not Verdict.INCONCLUSIVE and not comparison.fragile
    if decided:
        return None
    return look_after(comparison.blocks, looks)


def is_look(blocks: int, looks: tuple[int, ...] = LOOKS) -> bool:
    """Whether a verdict on this many clean blocks was planned."""
    return blocks in looks


def look_after(blocks: int, looks: tuple[int, ...] = LOOKS) -> int | None:
    """The next planned look of a case with this many clean blocks; None after the last."""
    return next((look for look in looks if look > blocks), None)


def look_is_due(blocks: int, looked_at: int, *, last: bool) -> bool:
    """Whether a case with so many clean blocks, looked at with `looked_at` (0: never), gets a look.

    One that was missed is made up for once; nothing is looked at twice. `last`: nothing more will
    be measured of it, so what there is gets the look that is left.
    """
    planned = look_after(looked_at)
    if planned is None or blocks <= looked_at:
        return False
    return blocks >= planned or (last and blocks >= LOOKS[0])
