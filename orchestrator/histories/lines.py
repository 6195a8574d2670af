"""The line of a history: one point per commit, and its breaks. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: A bridge needs commits with this many trials on both sides (METHODOLOGY, section 1).
BRIDGE_TRIALS = 5

#: (epoch of the host, configuration): points of one kind are comparable.
Kind = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Columns of equal length with a row per point.

    `position` is that of its commit on the line, `at` in seconds since 1970; the others are as in
    `models.Point`, NaN for missing values.
    """

    position: Integers
    commit: Integers
    at: Integers
    epoch: Integers
    configuration: Integers
    trials: Integers
    suspect: Integers
    invalid: Integers
    run_count: Integers
    mean: Floats
    mean_log: Floats
    m2_log: Floats

    def __len__(self) -> int:
        return len(self.position)

    def rows(self, chosen: NDArray[np.intp] | slice) -> "Points":
        """Return the chosen rows, in that order."""
        return Points(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBreak:
    """Point `before` and the previous point with valid trials (`after`) are not comparable.

    `host`: the host became another machine; `definition`: the configuration changed. Commits
    measured on both sides show that this alone multiplied the values by `bridge`. Without
    such commits it is None, and the line is broken.
    """

    after: int
    before: int
    host: bool
    definition: bool
    bridge: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`points`: one per commit, in the order of the line.

    `others`: points of the same commits with other epochs or configurations, each with the index of
    its commit's point in `owner`.
    """

    points: Points
    others: Points
    owner: Integers
    breaks: tuple[LineBreak, ...]


def join_points(parts: Sequence[Points]) -> Points:
    return Points(
        **{
            each.name: np.concatenate([getattr(part, each.name) for part in parts])
            for each in fields(Points)
        }
    )


def build_line(points: Points) -> Line:
    """Choose for each commit the point of its newest epoch and newest configuration with valid
    trials.

    The configuration decides between points of one second, whose rows have no order.
    """
    keys = (points.configuration, points.at, points.epoch, points.trials > 0, points.position)
    ordered = points.rows(np.lexsort(keys).astype(np.intp))
    last = np.append(ordered.position[1:] != ordered.position[:-1], True)[: len(ordered)]
    rest = np.flatnonzero(~last)
    chosen = ordered.rows(np.flatnonzero(last))
    others = ordered.rows(rest)
    owner = np.cumsum(last)[rest]
    bridges = _compute_bridges(chosen, others, owner)
    return Line(points=chosen, others=others, owner=owner, breaks=_find_breaks(chosen, bridges))


def _compute_bridges(
    chosen: Points, others: Points, owner: Integers
) -> Mapping[tuple[Kind, Kind], float]:
    """Map (kind, kind) to the factor from the first to the second, over all commits with both."""
    measured: dict[int, dict[Kind, float]] = defaultdict(dict)
    own = np.unique(owner)
    for place, part in ((own, chosen.rows(own.astype(np.intp))), (owner, others)):
        rows = zip(place, part.epoch, part.configuration, part.trials, part.mean_log, strict=True)
        for index, epoch, configuration, n, mean_log in rows:
            if n >= BRIDGE_TRIALS and np.isfinite(mean_log):
                measured[int(index)][int(epoch), int(configuration)] = float(mean_log)
    steps: dict[tuple[Kind, Kind], list[float]] = defaultdict(list)
    for kinds in measured.values():
        for one, other in combinations(kinds, 2):
            steps[one, other].append(kinds[other] - kinds[one])
            steps[other, one].append(kinds[one] - kinds[other])
    return {pair: float(np.exp(np.mean(logs))) for pair, logs in steps.items()}


def _find_breaks(
    chosen: Points, bridges: Mapping[tuple[Kind, Kind], float]
) -> tuple[LineBreak, ...]:
    counted = np.flatnonzero(chosen.trials > 0)
    epoch, configuration = chosen.epoch[counted], chosen.configuration[counted]
    differs = np.flatnonzero((epoch[1:] != epoch[:-1]) | (configuration[1:] != configuration[:-1]))
    breaks = []
    for place in differs.tolist():
        one = (int(epoch[place]), int(configuration[place]))
        other = (int(epoch[place + 1]), int(configuration[place + 1]))
        breaks.append(
            LineBreak(
                after=int(counted[place]),
                before=int(counted[place + 1]),
                host=one[0] != other[0],
                definition=one[1] != other[1],
                bridge=bridges.get((one, other)),
            )
        )
    return tuple(breaks)
