"""The share of a change that one commit has: a bisection assumes that it is all of it.

With two culprits, commits between them measure a part of the effect. The bisection takes such an
answer for presence or absence, and names one of the two, or a commit in between. Therefore the step
at the named commit is compared with the whole effect before the commit gets all of the blame.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.stats.bisection import Answer
from orchestrator.stats.summary import compute_t_quantile

#: A commit with less than this share of the effect does not get all of the blame.
HALF = 0.5
#: The one-sided alphas, in standard errors, of "more than half" (2.5 %) and of "not all" (0.5 %).
#: The second one is smaller, since it is tested after each further measurement.
_SURE_OF_MOST, _SURE_OF_A_PART = 1.96, 2.58
#: The confidence of a level between nothing and all: a search measures several commits.
_CONFIDENCE = 0.997


class Blame(StrEnum):
    """What the named commit has: all of the effect, a part of it, or not decided yet."""

    ALL = "all"
    PART = "part"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class CulpritShare:
    """The share of the effect that the step at a commit has, with its standard error.

    `weakest` is the index of the commit whose measurement adds most to the error; None if none of
    both sides can be measured again.
    """

    share: float
    error: float
    weakest: int | None

    @property
    def blame(self) -> Blame:
        if self.share - _SURE_OF_MOST * self.error > HALF:
            return Blame.ALL
        return Blame.PART if self.share + _SURE_OF_A_PART * self.error < 1 else Blame.OPEN

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval, cut to shares."""
        reach = _SURE_OF_MOST * self.error
        return max(0.0, self.share - reach), min(1.0, self.share + reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialLevel:
    """The commit at `index` has a part of the effect: more than nothing, and less than all.

    `interval`: the share, at `_CONFIDENCE`.
    """

    index: int
    interval: tuple[float, float]


def find_partial_level(
    answers: Sequence[Answer], *, effect: float, effect_error: float
) -> PartialLevel | None:
    """Return a measured commit between two culprits; None if there is no sure one.

    With a single culprit every commit has all of the effect, or nothing.
    """
    for index in sorted({answer.index for answer in answers}):
        own = [answer for answer in answers if answer.index == index]
        mean, error = _pool_answers(own)
        share = mean / effect
        degrees = sum(answer.degrees for answer in own)
        reach = compute_t_quantile(_CONFIDENCE, degrees) * (
            math.hypot(error, share * effect_error) / abs(effect)
        )
        if share - reach > 0 and share + reach < 1:
            return PartialLevel(index=index, interval=(share - reach, share + reach))
    return None


def estimate_culprit_share(
    culprit: int,
    commits: int,
    answers: Sequence[Answer],
    *,
    effect: float,
    effect_error: float,
) -> CulpritShare:
    """Return the share of the effect between the commit before the culprit and the culprit.

    Both were measured against the same good commit. The good commit itself has no effect, and the
    last of `commits` has all of it. A commit that was measured several times has the mean, weighted
    by the precision. `effect` is not 0.
    """
    last = commits - 1
    after, after_error = _pool(answers, culprit, whole=(effect, effect_error), last=last)
    before, before_error = _pool(answers, culprit - 1, whole=(effect, effect_error), last=last)
    share = (after - before) / effect
    # The last commit is the whole effect: its error cancels out in the ratio.
    whole_error = 0.0 if culprit == last else share * effect_error
    own_error = 0.0 if culprit == last else after_error
    error = math.sqrt(own_error**2 + before_error**2 + whole_error**2) / abs(effect)
    sides = [(own_error, culprit), (before_error, culprit - 1)]
    weakest = max(side for side in sides)
    return CulpritShare(share=share, error=error, weakest=weakest[1] if weakest[0] else None)


def _pool(
    answers: Sequence[Answer], index: int, *, whole: tuple[float, float], last: int
) -> tuple[float, float]:
    """Return the mean difference of a commit from the good one, with its standard error."""
    if index < 0:
        return 0.0, 0.0
    if index == last:
        return whole
    own = [each for each in answers if each.index == index]
    if not own:
        # Nothing is known: any share is possible.
        return 0.0, abs(whole[0])
    return _pool_answers(own)


def _pool_answers(own: Sequence[Answer]) -> tuple[float, float]:
    """Return the mean of the answers about one commit, weighted by precision, with its error."""
    weights = [1 / max(each.error, 1e-9) ** 2 for each in own]
    mean = sum(w * each.difference for w, each in zip(weights, own, strict=True)) / sum(weights)
    return mean, 1 / math.sqrt(sum(weights))
