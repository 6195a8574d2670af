"""Convert the rows of a bisection to the values that the statistics use."""

import math

from orchestrator.results.models import Bisection, ChangePoint
from orchestrator.stats.bisection import (
    Answer,
    Ask,
    Found,
    blocks_to_ask,
    culprit_chances,
    has_effect,
    next_step,
)
from orchestrator.stats.summary import t_quantile

#: For a confirmation run whose interval is known but whose blocks are not.
USUAL_BLOCKS = 10


def step_of(search: Bisection) -> Ask | Found:
    effect, error = effect_of(search.change_point)
    return next_step(
        len(search.path),
        answers_of(search),
        effect=effect,
        effect_error=error,
        unbuildable=search.unbuildable,
    )


def chances_of(search: Bisection) -> tuple[float, ...]:
    effect, error = effect_of(search.change_point)
    return culprit_chances(len(search.path), answers_of(search), effect=effect, effect_error=error)


def effect_of(row: ChangePoint) -> tuple[float, float]:
    """Return ln(after / before) with its standard error: as confirmed, otherwise as detected."""
    if (
        row.confirmed_change is not None
        and row.confirmed_low is not None
        and row.confirmed_high is not None
    ):
        change, low, high = row.confirmed_change, row.confirmed_low, row.confirmed_high
    else:
        change, low, high = row.change, row.low, row.high
    reach = (math.log1p(high) - math.log1p(low)) / 2
    return math.log1p(change), reach / t_quantile(0.95, USUAL_BLOCKS - 1)


def blocks_of(row: ChangePoint) -> int:
    """Return how many blocks a step of the bisection should have."""
    effect, error = effect_of(row)
    return blocks_to_ask(Answer(index=0, difference=effect, error=error, blocks=USUAL_BLOCKS))


def answers_of(search: Bisection) -> list[Answer]:
    return [
        Answer(**{key: value for key, value in told.items() if key not in {"run", "bad"}})
        for told in search.answers
    ]


def bad_of(search: Bisection, answer: Answer) -> bool:
    """Return whether the commit has the effect, according to its answer."""
    effect, error = effect_of(search.change_point)
    return has_effect(answer, effect=effect, effect_error=error)
