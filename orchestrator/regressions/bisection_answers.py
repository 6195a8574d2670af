"""Convert the rows of a bisection to the values that the statistics use."""

from orchestrator.results.models import Bisection, ChangePoint
from orchestrator.stats.bisection import (
    Answer,
    Culprit,
    NextMeasurement,
    compute_culprit_chances,
    compute_step_blocks,
    has_effect,
    plan_step,
    read_effect,
)


def choose_next_step(search: Bisection) -> NextMeasurement | Culprit:
    effect, error = load_effect(search.change_point)
    return plan_step(
        len(search.path),
        read_answers(search),
        effect=effect,
        effect_error=error,
        unbuildable=search.unbuildable,
    )


def compute_chances(search: Bisection) -> tuple[float, ...]:
    effect, error = load_effect(search.change_point)
    return compute_culprit_chances(
        len(search.path), read_answers(search), effect=effect, effect_error=error
    )


def load_effect(row: ChangePoint) -> tuple[float, float]:
    """Return ln(after / before) with its standard error: as confirmed, otherwise as detected."""
    if (
        row.confirmed_change is not None
        and row.confirmed_low is not None
        and row.confirmed_high is not None
    ):
        change, low, high = row.confirmed_change, row.confirmed_low, row.confirmed_high
    else:
        change, low, high = row.change, row.low, row.high
    return read_effect(change, low, high)


def count_step_blocks(row: ChangePoint) -> int:
    """Return how many blocks a step of the bisection should have."""
    return compute_step_blocks(*load_effect(row))


def read_answers(search: Bisection) -> list[Answer]:
    return [
        Answer(**{key: value for key, value in answer.items() if key not in {"run", "bad"}})
        for answer in search.answers
    ]


def is_bad_answer(search: Bisection, answer: Answer) -> bool:
    """Return whether the commit has the effect, according to its answer."""
    effect, error = load_effect(search.change_point)
    return has_effect(answer, effect=effect, effect_error=error)
