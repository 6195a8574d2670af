"""The measurements of a confirmation run: the blocks of its two commits in one series."""

from collections import defaultdict
from typing import NamedTuple
from uuid import UUID

from orchestrator.loadtools.metrics import find_metric
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import Series
from orchestrator.runs.models import Build, Run, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, BuildState, TrialState
from orchestrator.runs.trial_order import number_build
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import ALPHA, Comparison, compare_blocks
from orchestrator.stats.order_effect import find_order


def read_confirmation_run(
    run: Run, series: Series, spending: Spending | None = None
) -> Comparison | None:
    """Compare the run's two commits in one series; None if they share no block.

    Without `spending` it is a comparison on its own.
    """
    spending = spending or Spending()
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
        builds=[(2 * block[0].build + 1, 2 * block[1].build + 2) for block in blocks],
        alpha=min(ALPHA, spending.alpha),
        equivalence_alpha=spending.equivalence_alpha,
    )


def find_unbuildable(run: Run) -> set[int]:
    """Return the ids of the run's commits with a failed build."""
    failed = Build.objects.filter(job__run=run, state=BuildState.FAILED)
    return set(failed.values_list("commit_id", flat=True))


class _PlacedValue(NamedTuple):
    """The value of a trial, its place in the order of the job, from 1, and its build."""

    value: float
    place: int
    build: int


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
            build = number_build(number, run.builds)
            grouped[job, number][variant] = _PlacedValue(value, position + 1, build)
    return [grouped[key] for key in sorted(grouped) if {0, 1} <= set(grouped[key])]
