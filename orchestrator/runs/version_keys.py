"""The version key of one run in the API: a text that changes with the response.

There is none while the run is active, since everything may change at any time.
"""

from uuid import UUID

from django.db import connection

from orchestrator.accounts.members import Member
from orchestrator.runs.states import RUN_ENDED

_ENDED = sorted(str(state) for state in RUN_ENDED)


def _rows(table: str) -> str:
    """Return SQL that detects changed and deleted rows: an updated row has a new ctid and xmin."""
    return f"sum(hashtextextended({table}.ctid::text, {table}.xmin::text::bigint))"


#: The wait reason of a run depends on the hosts of its team and their leases, and so on the time.
_WAITS = f"""\
SELECT concat_ws(' ', {_rows("host")}, {_rows("lease")}) FROM fleet_host host
LEFT JOIN runs_hostlease lease ON lease.host_id = host.id WHERE host.team_id = run.team_id"""
_FOR_A_TIME = """\
EXISTS (SELECT FROM fleet_host host WHERE host.team_id = run.team_id AND host.open_hours <> '')
OR EXISTS (SELECT FROM runs_job job WHERE job.run_id = run.id AND job.not_before > now())"""

_RUN = f"""\
SELECT concat_ws(' ', run.ctid, run.xmin,
    (SELECT {_rows("job")} FROM runs_job job WHERE job.run_id = run.id),
    (SELECT {_rows("trial")} FROM runs_trial trial JOIN runs_job job ON job.id = trial.job_id
     WHERE job.run_id = run.id),
    (SELECT {_rows("build")} FROM runs_build build JOIN runs_job job ON job.id = build.job_id
     WHERE job.run_id = run.id),
    CASE WHEN run.state = 'queued' THEN ({_WAITS}) END)
FROM runs_run run WHERE run.id = %s AND run.team_id = %s
    AND (run.state = ANY(%s) OR run.state = 'queued' AND NOT ({_FOR_A_TIME}))
"""


def read_run_version(member: Member, run_id: UUID) -> str | None:
    """Return the key of a run that has ended, including late trials, or that has not begun.

    None if it is under way, does not exist, or waits for a time of day.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RUN, (run_id, member.team.pk, _ENDED))
        row = cursor.fetchone()
    return row[0] if row else None
