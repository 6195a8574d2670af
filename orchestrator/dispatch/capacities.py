"""The capacity of the baseline, from the earlier rounds of a job."""

from collections.abc import Mapping

from orchestrator.benchmarks.capacity_rates import compute_share_rates, replace_search
from orchestrator.benchmarks.spec import Spec
from orchestrator.loadtools.metrics import CAPACITY_METRIC
from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, TrialState


def load_capacities(job: Job) -> dict[int, float]:
    """Return the first capacity of the baseline by case, in requests per second.

    It is empty for a run of one variant: its searches are repeated, as there is nothing to compare.
    """
    if job.run.variants.count() < 2:
        return {}
    searched = Trial.objects.filter(
        job=job,
        host=job.host,
        variant__position=0,
        round__lt=job.round,
        state=TrialState.MEASURED,
        validity__in=COUNTED_VALIDITIES,
    )
    cases = dict(searched.order_by("-round").values_list("pk", "case_id"))
    values = load_values(cases, [CAPACITY_METRIC])
    return {
        case: values[trial][CAPACITY_METRIC]
        for trial, case in cases.items()
        if CAPACITY_METRIC in values.get(trial, {})
    }


def measure_at_shares(
    specs: Mapping[int, Spec], capacities: Mapping[int, float]
) -> dict[int, Spec]:
    """Return the definition of each case; at fixed rates where the capacity is known."""
    return {
        case: replace_search(spec, compute_share_rates(capacities[case]))
        if spec.load.search is not None and case in capacities
        else spec
        for case, spec in specs.items()
    }
