"""The last verdict of each case on each host, from the stored verdicts of the newest runs."""

from collections.abc import Mapping

from django.db import connection

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import build_project_condition

#: A case that none of these runs measured has no last verdict.
NEWEST_RUNS = 30

_LAST = """
SELECT DISTINCT ON (cell ->> 0, cell ->> 1)
    (cell ->> 0)::bigint, cell ->> 1, cell ->> 2
FROM (
    SELECT run.created_at, verdict.cards
    FROM runs_run run
    JOIN benchmarks_definition definition ON definition.id = run.definition_id
    JOIN benchmarks_benchmark benchmark ON benchmark.id = definition.benchmark_id
    JOIN benchmarks_project project ON project.id = benchmark.project_id
    JOIN comparisons_runverdict verdict ON verdict.run_id = run.id
    WHERE {condition} (%s::bigint IS NULL OR project.id = %s)
    ORDER BY run.created_at DESC LIMIT %s
) newest
CROSS JOIN LATERAL jsonb_array_elements(newest.cards) WITH ORDINALITY AS cards (card, place)
CROSS JOIN LATERAL jsonb_array_elements(card -> 7) AS cells (cell)
ORDER BY cell ->> 0, cell ->> 1, newest.created_at DESC, cards.place DESC
"""


def load_last_verdicts(
    member: Member, *, project: int | None = None
) -> Mapping[tuple[int, str], str]:
    """Map (case, host) to the verdict of the newest run that compared it."""
    condition, owner = build_project_condition(member)
    if member.project is None:
        # The runs of a team have an index by age.
        condition += "run.team_id = project.team_id AND run.team_id = %s AND "
    owners = [owner] if member.project is not None else [owner, owner]
    with connection.cursor() as cursor:
        values = [*owners, project, project, NEWEST_RUNS]
        cursor.execute(_LAST.format(condition=condition), values)
        return {(case, host): verdict for case, host, verdict in cursor.fetchall()}
