"""Which of several commits made the difference: a search by noisy answers.

A commit before the culprit measures like the last good one, a commit from it on is off by the
effect. An answer is a measured difference with its error, so it is evidence of a certain weight for
one or the other, and never a proof: a place may be asked again, and what was asked twice weighs
more. Waeber, Frazier and Henderson 2013 (bisection with noise: ask at the median).
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

#: Of a step.
FEWEST_BLOCKS, MOST_BLOCKS = 5, 20
#: A culprit is named at this probability.
SURE = 0.975
#: However clear an answer, it is wrong so often: the machine was busy, the build was another one.
WRONG = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the commit at `index` measured against the last good one.

    `difference`: ln(commit / good), with its standard `error`, from `blocks` blocks (at least 2).
    """

    index: int
    difference: float
    error: float
    blocks: int

    @property
    def change(self) -> float:
        """commit / good − 1."""
        return math.expm1(self.difference)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The commit at `index` is to be measured next."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The culprit lies from `first` to `last`, with this probability.

    The two are the same commit where one is named; otherwise those between cannot be built.
    """

    first: int
    last: int
    probability: float


def next_step(
    commits: int,
    answers: Sequence[Answer],
    *,
    effect: float,
    effect_error: float,
    unbuildable: Collection[int] = (),
) -> Ask | Found:
    """What to do next in a search over `commits` commits, of which the last has the effect.

    `effect`: ln(last / good), not 0, with its standard error. Indices count from the first commit
    after the good one. Commits of `unbuildable` are never asked.
    """
    chances = culprit_chances(commits, answers, effect=effect, effect_error=effect_error)
    groups = _groups(commits, unbuildable)
    best = max(groups, key=lambda group: sum(chances[group.start : group.stop]))
    chance = sum(chances[best.start : best.stop])
    askable = [group.stop - 1 for group in groups[:-1]]
    if chance >= SURE or not askable:
        return Found(first=best.start, last=best.stop - 1, probability=chance)
    until = [sum(chances[: index + 1]) for index in askable]
    _, index = min((abs(share - 0.5), index) for share, index in zip(until, askable, strict=True))
    return Ask(index=index)


def culprit_chances(
    commits: int, answers: Sequence[Answer], *, effect: float, effect_error: float
) -> tuple[float, ...]:
    """For each commit the probability that it is the culprit; they were all alike before."""
    logs = [0.0] * commits
    for answer in answers:
        bad, good = _evidence(answer, effect, effect_error)
        for culprit in range(commits):
            logs[culprit] += bad if culprit <= answer.index else good
    top = max(logs)
    weights = [math.exp(each - top) for each in logs]
    whole = sum(weights)
    return tuple(weight / whole for weight in weights)


def has_effect(answer: Answer, *, effect: float, effect_error: float) -> bool:
    """Whether the answer speaks for the effect rather than against it."""
    bad, good = _evidence(answer, effect, effect_error)
    return bad > good


def blocks_to_ask(whole: Answer) -> int:
    """How many blocks a step should have, from what the confirmation run of both ends measured
    (`whole`).

    So many that half the effect, which is what tells its presence from its absence, is three
    standard errors: a step is then wrong about once in 700.
    """
    one_block = whole.error * math.sqrt(whole.blocks)
    if whole.difference == 0:
        return MOST_BLOCKS
    needed = math.ceil((6 * one_block / whole.difference) ** 2)
    return min(max(needed, FEWEST_BLOCKS), MOST_BLOCKS)


def credible(chances: Sequence[float], share: float = 0.95) -> range:
    """The shortest run of commits that holds the culprit with at least this probability."""
    spans = (
        range(first, last + 1)
        for first in range(len(chances))
        for last in range(first, len(chances))
        if sum(chances[first : last + 1]) >= share
    )
    return min(spans, key=len, default=range(len(chances)))


def _evidence(answer: Answer, effect: float, effect_error: float) -> tuple[float, float]:
    """Log likelihoods of the answer with and without the effect, their distance bounded."""
    degrees = max(answer.blocks - 1, 1)
    error = max(answer.error, 1e-6)
    wide = math.hypot(error, effect_error)
    bad = _log_density((answer.difference - effect) / wide, degrees) - math.log(wide)
    good = _log_density(answer.difference / error, degrees) - math.log(error)
    most = math.log((1 - WRONG) / WRONG)
    return min(max(bad - good, -most), most) / 2, -min(max(bad - good, -most), most) / 2


def _log_density(x: float, degrees: int) -> float:
    """Of Student's t, less what it has in common for all x.

    scipy.stats has it, but takes longer to import than the rest of Pitwall.
    """
    return -(degrees + 1) / 2 * math.log1p(x * x / degrees)


def _groups(commits: int, unbuildable: Collection[int]) -> list[range]:
    """Commits that no answer can tell apart: those that cannot be built, with the next one."""
    groups = []
    first = 0
    for index in range(commits):
        if index not in unbuildable or index == commits - 1:
            groups.append(range(first, index + 1))
            first = index + 1
    return groups
