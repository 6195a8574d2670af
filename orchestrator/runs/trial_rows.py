"""The trials of a new run: thousands of rows at once, by COPY.

Model instances would take ten times as long as the rest of a request to start a run.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from orchestrator.core.ids import new_ids
from orchestrator.runs.states import TrialState

_COPY = (
    "COPY runs_trial (id, job_id, variant_id, case_id, round, position, expected_s, "
    "state, validity, reasons, message, provenance) FROM STDIN"
)
#: The initial values of the other columns, equal to the model's defaults.
_REST = f"{TrialState.PLANNED}\t\t[]\t\t{{}}"


class PlannedTrial(NamedTuple):
    """A new row; `round` from 1, `position` in the job's order of execution."""

    job: UUID
    variant: int
    case: int
    round: int
    position: int
    expected_s: float


def insert_planned(trials: Sequence[PlannedTrial]) -> None:
    """Insert all trials, with new ids in their order, in the caller's transaction."""
    ids = new_ids(len(trials))
    lines = "".join(
        f"{pk}\t{job.hex}\t{variant}\t{case}\t{number}\t{position}\t{expected_s!r}\t{_REST}\n"
        for pk, (job, variant, case, number, position, expected_s) in zip(ids, trials, strict=True)
    )
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(lines)
