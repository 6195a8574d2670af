"""The measurements of a confirmation run: the blocks of its two commits in one series."""

import math
from collections import defaultdict
from typing import NamedTuple
from uuid import UUID

from orchestrator.loadtools.metrics import find_metric
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import Series
from orchestrator.runs.models import Build, Run, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, BuildState, TrialState
from orchestrator.stats.bisection import Answer
from orchestrator.stats.comparison import Comparison, compare_blocks
from orchestrator.stats.order_effect import find_order
from orchestrator.stats.summary import compute_t_quantile


def read_confirmation_run(run: Run, series: Series) -> Comparison | None:
    """Compare the run's two commits in one series; None if they share no block."""
    info = find_metric(series.metric.key)
    blocks = _load_blocks(run, series)
    if info is None or not blocks:
        return None
    sides = [[block[variant].value for block in blocks] for variant in (0, 1)]
    return compare_blocks(
        *sides,
        better=info.better,
        margin=info.margin,
        orders=[find_order(block[0].place, block[1].place) for block in blocks],
    )


def as_answer(index: int, comparison: Comparison) -> Answer | None:
    """Return a comparison as an answer of a bisection; None if it has no result."""
    change, low, high = comparison.change, comparison.low, comparison.high
    if change is None or low is None or high is None or comparison.degrees is None:
        return None
    reach = (math.log1p(high) - math.log1p(low)) / 2
    error = reach / compute_t_quantile(comparison.confidence, comparison.degrees)
    return Answer(index=index, difference=math.log1p(change), error=error, blocks=comparison.blocks)


def find_unbuildable(run: Run) -> set[int]:
    """Return the ids of the run's commits with a failed build."""
    failed = Build.objects.filter(job__run=run, state=BuildState.FAILED)
    return set(failed.values_list("commit_id", flat=True))


class _PlacedValue(NamedTuple):
    """The value of a trial, and its place in the order of the job, from 1."""

    value: float
    place: int


def _load_blocks(run: Run, series: Series) -> list[dict[int, _PlacedValue]]:
    """Return the complete blocks, each by the position of the variant."""
    trials = Trial.objects.filter(
        job__run=run,
        case=series.case_id,
        host=series.host_id,
        state=TrialState.MEASURED,
        validity__in=COUNTED_VALIDITIES,
    ).values_list("pk", "job_id", "round", "variant__position", "position")
    values = load_values([pk for pk, *_ in trials], {series.metric.key})
    grouped: dict[tuple[UUID, int], dict[int, _PlacedValue]] = defaultdict(dict)
    for pk, job, number, variant, position in trials:
        if pk in values:
            value = values[pk][series.metric.key]
            grouped[job, number][variant] = _PlacedValue(value, position + 1)
    return [grouped[key] for key in sorted(grouped) if {0, 1} <= set(grouped[key])]
