"""Bisection with noisy answers: the search for the commit that caused a difference.

A commit before the culprit measures like the last good commit; later ones differ by the effect. An
answer is a measured difference with a standard error. It is weighted evidence, not a proof: a
commit may be measured again, and both answers count. The next commit is the median of the posterior
distribution (Waeber, Frazier and Henderson 2013).

Each step builds both commits several times, and its error contains the variance between these
builds (`build_variance`). What repeating cannot average, such as a bad commit of another
repository, is a lapse: it happens once for a commit, not once for each of its answers.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.stats.comparison import Comparison, compute_standard_error

#: Limits for the blocks of a step. The fewest are two for each of ENOUGH_BUILDS builds.
FEWEST_BLOCKS, MOST_BLOCKS = 10, 20
#: The bisection ends at this probability.
SURE = 0.975
#: The probability that even clear answers about a commit are wrong, however many there are.
WRONG = 0.005
_MOST_EVIDENCE = math.log((1 - WRONG) / WRONG)
#: A search ends after this many steps more than twice those of a search without noise.
_SPARE_STEPS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The measurement of the commit at `index` against the last good one.

    `difference`: ln(commit / good), with its standard `error` and its `degrees` of freedom, from
    `blocks` blocks (at least 2).
    """

    index: int
    difference: float
    error: float
    blocks: int
    degrees: float

    @property
    def change(self) -> float:
        """Return commit / good − 1."""
        return math.expm1(self.difference)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextMeasurement:
    """The next step is to measure the commit at `index`."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The culprit is between `first` and `last` (both included), with this probability.

    They are equal if the culprit is a single commit; otherwise those before `last` cannot be built.
    """

    first: int
    last: int
    probability: float


def read_answer(index: int, comparison: Comparison) -> Answer | None:
    """Return the comparison of a commit with the last good one; None if it has no result."""
    change, error = comparison.change, compute_standard_error(comparison)
    if change is None or error is None or comparison.degrees is None:
        return None
    return Answer(
        index=index,
        difference=math.log1p(change),
        error=error,
        blocks=comparison.blocks,
        degrees=comparison.degrees,
    )


def count_most_steps(commits: int) -> int:
    """Return the answers after which a search over so many commits ends without a culprit."""
    return 2 * math.ceil(math.log2(commits)) + _SPARE_STEPS


def plan_step(
    commits: int,
    answers: Sequence[Answer],
    *,
    effect: float,
    effect_error: float,
    unbuildable: Collection[int] = (),
) -> NextMeasurement | Culprit:
    """Return the next step of a search over `commits` commits; the last one has the effect.

    `effect`: ln(last / good), not 0, with its standard error. Indices count from the first commit
    after the good one. Commits in `unbuildable` are never chosen.
    """
    chances = compute_culprit_chances(commits, answers, effect=effect, effect_error=effect_error)
    groups = _group_commits(commits, unbuildable)
    best = max(groups, key=lambda group: sum(chances[group.start : group.stop]))
    chance = sum(chances[best.start : best.stop])
    evidence = dict(_weigh_commits(answers, effect, effect_error))
    # More answers about a commit with all its evidence would change nothing.
    askable = [
        group.stop - 1
        for group in groups[:-1]
        if abs(evidence.get(group.stop - 1, 0.0)) < _MOST_EVIDENCE
    ]
    if chance >= SURE or not askable:
        return Culprit(first=best.start, last=best.stop - 1, probability=chance)
    until = [sum(chances[: index + 1]) for index in askable]
    _, index = min((abs(share - 0.5), index) for share, index in zip(until, askable, strict=True))
    return NextMeasurement(index=index)


def compute_culprit_chances(
    commits: int, answers: Sequence[Answer], *, effect: float, effect_error: float
) -> tuple[float, ...]:
    """Return the probability of each commit to be the culprit, with a uniform prior."""
    logs = [0.0] * commits
    for index, evidence in _weigh_commits(answers, effect, effect_error):
        for culprit in range(commits):
            logs[culprit] += evidence / 2 if culprit <= index else -evidence / 2
    top = max(logs)
    weights = [math.exp(each - top) for each in logs]
    whole = sum(weights)
    return tuple(weight / whole for weight in weights)


def has_effect(answer: Answer, *, effect: float, effect_error: float) -> bool:
    """Return whether the answer is more likely with the effect than without it."""
    return _compute_evidence(answer, effect, effect_error) > 0


def compute_step_blocks(effect: float, effect_error: float, blocks: int) -> int:
    """Return the number of blocks for a step; `blocks` measured the effect with its error.

    Half the effect, the threshold between presence and absence, is then three standard errors, so a
    step is wrong about once in 700.
    """
    one_block = effect_error * math.sqrt(blocks)
    if effect == 0:
        return MOST_BLOCKS
    needed = math.ceil((6 * one_block / effect) ** 2)
    return min(max(needed, FEWEST_BLOCKS), MOST_BLOCKS)


def find_credible_range(chances: Sequence[float], share: float = 0.95) -> range:
    """Return the shortest range of commits with the culprit with at least this probability."""
    spans = (
        range(first, last + 1)
        for first in range(len(chances))
        for last in range(first, len(chances))
        if sum(chances[first : last + 1]) >= share
    )
    return min(spans, key=len, default=range(len(chances)))


def _weigh_commits(
    answers: Sequence[Answer], effect: float, effect_error: float
) -> Iterator[tuple[int, float]]:
    """Yield each measured commit with the evidence of all its answers together, which is bounded.

    A fault of a commit is in all answers about it, so many of them are no proof.
    """
    of_commit: dict[int, float] = defaultdict(float)
    for answer in answers:
        of_commit[answer.index] += _compute_evidence(answer, effect, effect_error)
    for index, evidence in of_commit.items():
        yield index, min(max(evidence, -_MOST_EVIDENCE), _MOST_EVIDENCE)


def _compute_evidence(answer: Answer, effect: float, effect_error: float) -> float:
    """Return the logarithm of how much more likely the answer is with the effect than without."""
    degrees = max(answer.degrees, 1)
    error = max(answer.error, 1e-6)
    wide = math.hypot(error, effect_error)
    bad = _log_density((answer.difference - effect) / wide, degrees) - math.log(wide)
    good = _log_density(answer.difference / error, degrees) - math.log(error)
    return bad - good


def _log_density(x: float, degrees: float) -> float:
    """Return the log density of Student's t up to a constant.

    scipy.stats has it, but takes longer to import than the rest of Pitwall.
    """
    return -(degrees + 1) / 2 * math.log1p(x * x / degrees)


def _group_commits(commits: int, unbuildable: Collection[int]) -> list[range]:
    """Group commits that no answer can separate: those that cannot be built, with the next one."""
    groups = []
    first = 0
    for index in range(commits):
        if index not in unbuildable or index == commits - 1:
            groups.append(range(first, index + 1))
            first = index + 1
    return groups
