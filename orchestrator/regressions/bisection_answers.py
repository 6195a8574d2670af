"""Convert the rows of a bisection to the values that the statistics use."""

import math

from orchestrator.results.models import Bisection, ChangePoint
from orchestrator.stats.bisection import (
    FEWEST_BLOCKS,
    Answer,
    Culprit,
    NextMeasurement,
    compute_culprit_chances,
    compute_step_blocks,
    has_effect,
    plan_step,
)
from orchestrator.stats.culprit_share import (
    CulpritShare,
    PartialLevel,
    estimate_culprit_share,
    find_partial_level,
)

#: Half the width of a 95 % interval of many values, in standard errors.
_HALF_WIDTH = 1.96


def choose_next_step(search: Bisection) -> NextMeasurement | Culprit:
    effect, error = load_effect(search.change_point)
    return plan_step(
        len(search.path),
        read_answers(search),
        effect=effect,
        effect_error=error,
        unbuildable=search.unbuildable,
    )


def read_share(search: Bisection, culprit: Culprit) -> CulpritShare:
    """Return the share of the change that a single named commit has."""
    effect, error = load_effect(search.change_point)
    return estimate_culprit_share(
        culprit.first, len(search.path), read_answers(search), effect=effect, effect_error=error
    )


def read_partial_level(search: Bisection) -> PartialLevel | None:
    """Return a commit that has only a part of the change; None if no answer proves one."""
    effect, error = load_effect(search.change_point)
    return find_partial_level(read_answers(search), effect=effect, effect_error=error)


def compute_chances(search: Bisection) -> tuple[float, ...]:
    effect, error = load_effect(search.change_point)
    return compute_culprit_chances(
        len(search.path), read_answers(search), effect=effect, effect_error=error
    )


def load_effect(row: ChangePoint) -> tuple[float, float]:
    """Return ln(after / before) with its standard error: as confirmed, otherwise as detected."""
    if row.confirmed_change is not None and row.confirmed_error is not None:
        return math.log1p(row.confirmed_change), row.confirmed_error
    reach = (math.log1p(row.high) - math.log1p(row.low)) / 2
    return math.log1p(row.change), reach / _HALF_WIDTH


def count_step_blocks(row: ChangePoint) -> int:
    """Return how many blocks a step of the bisection should have."""
    effect, error = load_effect(row)
    return compute_step_blocks(effect, error, row.confirmed_blocks or FEWEST_BLOCKS)


def read_answers(search: Bisection) -> list[Answer]:
    return [
        Answer(**{key: value for key, value in answer.items() if key not in {"run", "bad"}})
        for answer in search.answers
    ]


def is_bad_answer(search: Bisection, answer: Answer) -> bool:
    """Return whether the commit has the effect, according to its answer."""
    effect, error = load_effect(search.change_point)
    return has_effect(answer, effect=effect, effect_error=error)
