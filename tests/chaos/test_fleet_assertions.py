"""What is asked of journals after a fault would notice two jobs on one host."""

import pytest

from tests.support.journals import StepJournal, overlaps

pytestmark = pytest.mark.chaos


def step(job: str, began: float, ended: float) -> StepJournal:
    events = ({"event": "supervisor_started", "t": began}, {"event": "round_done", "t": ended})
    return StepJournal(job=job, step="a1-r1", events=events)


def test_consecutive_jobs_pass_the_overlap_check() -> None:
    assert overlaps([step("second", 3, 4), step("first", 1, 2), step("third", 4, 5)]) == []


@pytest.mark.parametrize("other", [(1.5, 3), (0.5, 1.5), (1.2, 1.8), (0, 9)])
def test_overlapping_jobs_are_named(other: tuple[float, float]) -> None:
    (overlap,) = overlaps([step("one", 1, 2), step("two", *other)])
    assert "one" in overlap
    assert "two" in overlap
