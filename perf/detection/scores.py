"""Compare detected changes with the known ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: A change counts as found if the alarm is at most this many points away.
TOLERANCE = 2


@dataclass(frozen=True, slots=True)
class Score:
    """Totals over many series: changes found, alarms without a change, changes missed."""

    found: int = 0
    false: int = 0
    missed: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.found + other.found, self.false + other.false, self.missed + other.missed)

    @property
    def precision(self) -> float:
        return _share(self.found, self.found + self.false)

    @property
    def recall(self) -> float:
        return _share(self.found, self.found + self.missed)

    @property
    def f1(self) -> float:
        return _share(2 * self.found, 2 * self.found + self.false + self.missed)

    @property
    def shares(self) -> Mapping[str, float]:
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


def compute_score(expected: Sequence[int], alarms: Sequence[int]) -> Score:
    """Each change takes the nearest unused alarm within TOLERANCE."""
    left = sorted(alarms)
    hits = 0
    for change in sorted(expected):
        near = [alarm for alarm in left if abs(alarm - change) <= TOLERANCE]
        if near:
            left.remove(min(near, key=lambda alarm: abs(alarm - change)))
            hits += 1
    return Score(hits, len(left), len(expected) - hits)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
