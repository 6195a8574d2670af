"""Results that are too old to store: their project no longer keeps single results of that age."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection

from orchestrator.benchmarks.models import Benchmark
from orchestrator.measurements.incoming import ResultIn

ONE_DAY = timedelta(days=1)
#: Runs for each post of results.
_TRIALS_DAYS = """
SELECT project_id, trials_days FROM results_retention
WHERE project_id = ANY(%s) AND trials_days IS NOT NULL
"""


def find_age_errors(
    benchmarks: Sequence[Benchmark], results: Sequence[ResultIn], now: datetime
) -> dict[int, str]:
    """Map the index of each result that is too old to the reason for refusing it.

    Single results of that age are removed, so Pitwall cannot check whether it already has the
    result.
    """
    old = {
        place: benchmark.project_id
        for place, (benchmark, result) in enumerate(zip(benchmarks, results, strict=True))
        if result.at is not None and now - result.at > ONE_DAY
    }
    if not old:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_TRIALS_DAYS, [[*{*old.values()}]])
        days = dict(cursor.fetchall())
    return {
        place: f"it is older than the {days[project]} days for which its project keeps single "
        "results, so Pitwall cannot check whether it was sent before"
        for place, project in old.items()
        if project in days and now - results[place].at > days[project] * ONE_DAY  # type: ignore[operator]
    }
