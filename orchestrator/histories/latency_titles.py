"""The label next to a latency in a history: the load model determines its meaning."""

from orchestrator.histories.lines import Points
from orchestrator.loadtools.metrics import describe_latency_model
from orchestrator.measurements.selectors import get_load_model, load_case_loads
from orchestrator.results.models import Series
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState

#: The load model is read from this many of the newest commits: some have no trials left.
_NEWEST = 5


def describe_latency(series: Series, points: Points) -> str | None:
    """Return the label of a latency, from the load of the newest commits that have trials."""
    if describe_latency_model(series.metric.key, "closed") is None:
        return None
    newest = (
        Trial.objects.filter(
            case=series.case_id,
            host=series.host_id,
            variant__commit__in=points.commit[points.trials > 0][-_NEWEST:].tolist(),
            state=TrialState.MEASURED,
        )
        .order_by("-pk")
        .values_list("job__run__definition", "job__run__definition__digest", "case__parameters")
        .first()
    )
    model = get_load_model(load_case_loads(*newest)) if newest else None
    return describe_latency_model(series.metric.key, model) if model else None
