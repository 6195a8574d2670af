"""Which cases of a matrix are decided at a look, and what the others still need.

A case is decided when each of its primary metrics is, against each contender. A change is believed
only if it would also be among all cells of the run (Benjamini and Hochberg): a case that ended
with a p value which suffices for one case alone could never be believed among hundreds, since
nothing more is measured of it.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from scipy.special import ndtri

from orchestrator.stats.comparison import Comparison, Verdict
from orchestrator.stats.looks import LOOKS, PENALTY, look_after
from orchestrator.stats.matrix import FALSE_DISCOVERY_RATE, adjust, worst
from orchestrator.stats.power import MOST_BLOCKS

#: A screened case goes on after so many blocks only if some metric has a p value below this.
SCREEN_BLOCKS = 7
SCREEN_P = 0.1
#: With a larger share of void blocks a case is not believed, whatever its numbers say.
MOST_VOID = 0.3
#: A case takes about so many blocks where nothing is known of its noise.
TYPICAL_BLOCKS = 10

Case = TypeVar("Case", bound=Hashable)

_CLAIMS = (Verdict.REGRESSED, Verdict.IMPROVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look finds of one case: its primary metrics against each contender, clean blocks
    only, compared at the alphas of `looks`. `void` counts the blocks that were left out."""

    blocks: int
    void: int
    comparisons: tuple[Comparison, ...]

    @property
    def p_values(self) -> tuple[float, ...]:
        return tuple(1.0 if each.p_value is None else each.p_value for each in self.comparisons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a case stands after a look.

    `verdict` is the worst of its cells. `cell` carries it, or stands in the way of a decision; None
    without any.
    `dropped`: screened out, since nothing hints at a change. `needed_blocks`: how many in all
    would settle it, None for a decided case and where that cannot be told. `obstacle` says why a
    case with a verdict is not decided.
    """

    decided: bool
    dropped: bool
    verdict: Verdict
    cell: int | None
    needed_blocks: int | None
    obstacle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksLeft:
    """How many more blocks a case takes at least, most likely, and at most."""

    least: int
    typical: int
    most: int


def standings(
    seen: Mapping[Case, Seen],
    *,
    elsewhere: Sequence[float] = (),
    cells: int = 0,
    screen: bool = False,
) -> dict[Case, Standing]:
    """Judge the cases that are looked at now.

    `elsewhere`: the newest p values of the run's other cases; `cells`: how many cells the run has
    in all, those without a p value yet among them.
    """
    bound = believed_below(
        [*elsewhere, *(p for each in seen.values() for p in each.p_values)], cells
    )
    return {case: _standing(each, bound, screen) for case, each in seen.items()}


def believed_below(p_values: Sequence[float], cells: int) -> float:
    """The largest p value of a look at which a change is believed among `cells` of them.

    Where none is, what the smallest one had to be.
    """
    family = max(cells, len(p_values), 1)
    counted = [min(1.0, PENALTY * p) for p in p_values]
    q_values = adjust([*counted, *[1.0] * (family - len(counted))])
    believed = sum(q is not None and q <= FALSE_DISCOVERY_RATE for q in q_values)
    # One more may join those that are believed already.
    return FALSE_DISCOVERY_RATE * min(family, believed + 1) / family / PENALTY


def blocks_left(*, done: int, looked_at: int, most: int, needed: int | None) -> BlocksLeft:
    """Of a case with `done` clean blocks that may have `most` more, looked at with `looked_at`.

    `needed`: blocks in all by its last look, where that told.
    """
    following = look_after(looked_at)
    least = most if following is None else min(most, max(0, following - done))
    wanted = needed if needed is not None else max(TYPICAL_BLOCKS, done + 1)
    look = next((each for each in LOOKS if each >= wanted), LOOKS[-1])
    return BlocksLeft(least=least, typical=min(most, max(least, look - done)), most=most)


def _standing(seen: Seen, bound: float, screen: bool) -> Standing:
    obstacles = [_obstacle(each, bound) for each in seen.comparisons]
    verdict = worst(each.verdict for each in seen.comparisons)
    blocked = [at for at, why in enumerate(obstacles) if why]
    obstacle = _void(seen) or next((why for why in obstacles if why), "")
    if not seen.comparisons:
        obstacle = "no primary metric was measured on both sides"
    decided = not obstacle
    return Standing(
        decided=decided,
        dropped=screen and not decided and _nothing_hints(seen),
        verdict=verdict,
        cell=blocked[0] if blocked else _worst_cell(seen.comparisons, verdict),
        needed_blocks=None if decided else _needed(seen, obstacles, bound),
        obstacle=obstacle,
    )


def _void(seen: Seen) -> str:
    share = seen.void / max(1, seen.blocks + seen.void)
    return f"{seen.void} blocks are void: too many to believe the rest" * (share > MOST_VOID)


def _obstacle(cell: Comparison, bound: float) -> str:
    """Why this cell is not decided; empty if it is."""
    if cell.verdict is Verdict.INCONCLUSIVE:
        return "; ".join(cell.reasons) or "nothing is proven yet"
    if cell.fragile:
        return "the robust estimate leads to another verdict"
    if cell.verdict in _CLAIMS and (cell.p_value or 0.0) > bound:
        return "among so many cases a change of this size may be chance"
    return ""


def _nothing_hints(seen: Seen) -> bool:
    return seen.blocks >= SCREEN_BLOCKS and min(seen.p_values, default=1.0) >= SCREEN_P


def _worst_cell(cells: Sequence[Comparison], verdict: Verdict) -> int | None:
    places = [at for at, cell in enumerate(cells) if cell.verdict is verdict]
    return max(places, key=lambda at: abs(cells[at].change or 0.0), default=None)


def _needed(seen: Seen, obstacles: Sequence[str], bound: float) -> int | None:
    wanted = [
        _needed_by(cell, bound)
        for cell, obstacle in zip(seen.comparisons, obstacles, strict=True)
        if obstacle
    ]
    known = [each for each in wanted if each is not None]
    if not known:
        return None
    return min(MOST_BLOCKS, max(*known, seen.blocks + 1))


def _needed_by(cell: Comparison, bound: float) -> int | None:
    """Blocks in all until the cell would be decided, if it goes on as it did."""
    if cell.verdict is Verdict.INCONCLUSIVE:
        return cell.needed_blocks
    if cell.p_value is None or not 0 < bound < cell.p_value < 1:
        return cell.blocks + 1
    # The distance of the mean from none grows with the root of the blocks.
    reach = float(ndtri(bound / 2)) / float(ndtri(cell.p_value / 2))
    return math.ceil(cell.blocks * reach**2)
