"""Which results are too old to be stored: their project no longer keeps single results that old."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection

from orchestrator.benchmarks.models import Benchmark
from orchestrator.measurements.incoming import ResultIn

ONE_DAY = timedelta(days=1)
#: Each post of results asks it.
_TRIALS_DAYS = """
SELECT project_id, trials_days FROM results_retention
WHERE project_id = ANY(%s) AND trials_days IS NOT NULL
"""


def errors_of_age(
    benchmarks: Sequence[Benchmark], results: Sequence[ResultIn], now: datetime
) -> dict[int, str]:
    """Place → why a result is too old to be taken in: single results of its time are not kept any
    more, so that nobody can tell whether it was taken before."""
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
        "results: whether it was taken before cannot be told any more"
        for place, project in old.items()
        if project in days and now - results[place].at > days[project] * ONE_DAY  # type: ignore[operator]
    }
