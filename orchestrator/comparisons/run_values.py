"""What one run measured, where points do not keep all of it: read from its trials."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.points import NOT_READ, Counts, Found, Place, Values, points_of
from orchestrator.comparisons.sides import Side
from orchestrator.measurements.comparability import block_of
from orchestrator.measurements.readings import values_of
from orchestrator.measurements.removals import removals_of
from orchestrator.results.models import Removed
from orchestrator.results.models.series import MOST_VALUES
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity

#: Metric key → each value with its block.
_Series = Mapping[str, list[tuple[float, int]]]


def points_of_run(
    benchmark: Benchmark,
    sides: tuple[Side, Side],
    run: Run,
    *,
    metrics: Collection[str] | None,
    places: tuple[Counts | None, Counts | None],
) -> tuple[Found, Found]:
    """The points of both sides, with all that the run measured.

    A commit that was measured in many runs, such as a release that each new commit is compared
    with, has points that keep the newest values only, and nearly all of them are of other runs:
    those are not even read. Where single trials are not kept any more, what the points have is
    all that there is.
    """

    def found(below: int | None = None) -> tuple[Found, Found]:
        first, second = (
            points_of(benchmark, side, metrics=metrics, places=counts, below=below)
            for side, counts in zip(sides, places, strict=True)
        )
        return first, second

    points = found(below=MOST_VALUES)
    if not any(map(_is_cut, points)):
        return points
    if Removed.TRIALS in removals_of(run.pk):
        return found()
    first, second = (_of_run(run, side.commit, metrics) for side in sides)
    return (
        _with_own(points[0], first, other=points[1]),
        _with_own(points[1], second, other=points[0]),
    )


def _is_cut(found: Found) -> bool:
    return any(
        values is NOT_READ
        for likenesses in found.values()
        for measured in likenesses.values()
        for values in measured.metrics.values()
    )


def _of_run(run: Run, commit: Commit, metrics: Collection[str] | None) -> Mapping[Place, _Series]:
    trials = Trial.objects.filter(
        job__run=run, variant__commit=commit, state=TrialState.MEASURED
    ).exclude(validity=Validity.INVALID)
    rows = list(trials.order_by("pk").values_list("pk", "host_id", "case_id", "job_id", "round"))
    readings = values_of([row[0] for row in rows], metrics)
    found: dict[Place, dict[str, list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    for pk, host, case, job, number in rows:
        for metric, value in readings.get(pk, {}).items():
            found[Place(str(host), case)][metric].append((value, block_of(job, number)))
    return found


def _with_own(found: Found, own: Mapping[Place, _Series], *, other: Found) -> Found:
    whole = dict(found)
    for place in found.keys() & own.keys():
        # A run has one definition, and its jobs one state of their host: both sides are alike.
        likenesses = found[place]
        common = [likenesses[each] for each in likenesses.keys() & other.get(place, {}).keys()]
        newest = max(common or likenesses.values(), key=lambda each: each.at)
        metrics = {metric: _values(series) for metric, series in own[place].items()}
        whole[place] = {newest.likeness: replace(newest, metrics=metrics)}
    return whole


def _values(series: list[tuple[float, int]]) -> Values:
    return Values([value for value, _ in series], [block for _, block in series])
