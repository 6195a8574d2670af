"""A version key of the results of commits: a text that changes with every new measurement."""

from collections.abc import Sequence

from django.db import connection

from orchestrator.benchmarks.models import Benchmark, Commit

_MARK = """
SELECT concat_ws(' ', count(*), sum(point.trials), sum(point.suspect), sum(point.invalid),
                 max(point.at), (SELECT count(*) FROM runs_trial trial
                                 JOIN runs_variant variant ON variant.id = trial.variant_id
                                 WHERE variant.commit_id = ANY(%(commits)s)
                                 AND trial.state <> 'planned'),
                 (SELECT max(id::text) FROM benchmarks_definition
                  WHERE benchmark_id = %(benchmark)s),
                 (SELECT max(imported_at) FROM results_referencesource))
FROM results_point point WHERE point.commit_id = ANY(%(commits)s)
"""


def mark_of_results(benchmark: Benchmark, commits: Sequence[Commit]) -> str:
    """Return the version key of everything that reports and comparisons of these commits read.

    Names of hosts are not included.
    """
    values: dict[str, int | list[int]] = {
        "benchmark": benchmark.pk,
        "commits": [commit.pk for commit in commits],
    }
    with connection.cursor() as cursor:
        cursor.execute(_MARK, values)
        return str(cursor.fetchone()[0])
