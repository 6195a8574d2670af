"""Record rows as the services do, without a request or a trial."""

from collections.abc import Sequence

from orchestrator.benchmarks.models import Benchmark
from orchestrator.measurements import recording as recording
from orchestrator.measurements.metrics import metric_ids
from orchestrator.measurements.recording import Ids, Measured


def record(rows: Sequence[Measured], ids: Ids | None = None) -> int:
    """Return how many of the rows, all of one team, were new."""
    if not rows:
        return 0
    team = Benchmark.objects.select_related("project").get(pk=rows[0].benchmark).project.team_id
    metrics = metric_ids(team, {key for row in rows for key in row.readings})
    return len(recording.record(rows, metrics, ids))
