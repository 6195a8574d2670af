"""The points of a series along the main line: the first parents of the default branch."""

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from orchestrator.results.models import Point
from orchestrator.stats.rollup import roll_up

#: Points of fewer trials are left out if most have twice as many.
LEAST_TRIALS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePoint:
    """The one point that represents a commit; `commit` is the id of its row.

    `squares`: the sum of squares of the logs of its trials around their mean; None if a value has
    no logarithm.
    """

    commit: int
    position: int
    epoch: int
    configuration: int
    trials: int
    value: float
    squares: float | None = None


def load_main_line(series: int, *, most: int, since: int | None = None) -> list[LinePoint]:
    """Return one point per commit, oldest first: the latest `most`, from the position `since` on.

    A commit that was measured before and after a change of the host has several points. The one
    that is comparable with the commit before is used. Points of fewer than three trials are left
    out if most have twice as many.
    """
    rows = Point.objects.filter(
        series=series, commit__mainline=True, position__isnull=False, trials__gt=0
    )
    if since is not None:
        rows = rows.filter(position__gte=since)
    newest = rows.order_by("-position").values_list(
        "commit_id", "position", "epoch", "configuration", "trials", "mean", "mean_log", "values"
    )[:most]
    table = list(newest)
    if not table:
        return []
    enough = min(LEAST_TRIALS, median(row[4] for row in table) / 2)
    points = [
        LinePoint(
            commit=row[0],
            position=row[1] or 0,
            epoch=row[2],
            configuration=row[3],
            trials=row[4],
            value=row[5] if row[6] is None else math.exp(row[6]),
            # Each trial is a run of its own here: the spread of the trials is wanted.
            squares=roll_up(row[7], range(len(row[7]))).m2_log,
        )
        for row in table
        if row[5] is not None and row[4] >= enough
    ]
    return _select_one_per_commit(points)


def _select_one_per_commit(points: list[LinePoint]) -> list[LinePoint]:
    """Select one point per commit, of the same epoch and configuration if possible.

    Later measurements of old commits, after a change of the host, are left out.
    """
    by_position: dict[int, list[LinePoint]] = defaultdict(list)
    for point in points:
        by_position[point.position].append(point)
    ends = {(point.epoch, point.configuration): point.position for point in reversed(points)}
    line: list[LinePoint] = []
    for position in sorted(by_position):
        choice = sorted(by_position[position], key=lambda point: (point.epoch, -point.trials))
        if not line:
            line.append(choice[0])
            continue
        now = (line[-1].epoch, line[-1].configuration)
        same = next((each for each in choice if (each.epoch, each.configuration) == now), None)
        if same is not None or ends[now] < position:
            line.append(same or choice[0])
    return line
