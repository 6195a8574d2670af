"""What a history marks of a series: its change points, its outliers, and where it begins anew.

In few columns, since histories are read often; `change_points` knows the rest.
"""

import json
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

#: Columns of a query that has a `series`: its change points, where it begins anew, its last look.
SHIFTS = """
(
    SELECT jsonb_agg(jsonb_build_array(
        id, commit_id, kind, state, change, low, high, regressed, duel_change, message))
    FROM results_changepoint
    WHERE series_id = series.id AND state <> 'superseded'
        AND (seen OR state IN ('confirmed', 'confirming'))
), (
    SELECT jsonb_build_array(commit_id, reason) FROM results_baseline
    WHERE series_id = series.id OR case_id = series.case_id ORDER BY id DESC LIMIT 1
), (
    SELECT to_jsonb(outliers) FROM results_serieslook WHERE series_id = series.id
), (
    SELECT unstable FROM results_serieslook WHERE series_id = series.id
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A change point at the commit `commit`; `duel` is what the duel measured, if there was one.

    `state` is one of `ChangeState`, `kind` one of `ChangeKind`.
    """

    id: UUID
    commit: int
    kind: str
    state: str
    change: float
    interval: tuple[float, float]
    regressed: bool
    duel: float | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """`baseline`: the commit at which the history begins anew, and why. `outliers` are commits."""

    points: tuple[Shift, ...] = ()
    baseline: tuple[int, str] | None = None
    outliers: tuple[int, ...] = ()
    unstable: bool = False


def shifts_of(series: int) -> Shifts:
    """Change points that the last look still saw or that are sure, and what was found beside."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {SHIFTS} FROM results_series series WHERE id = %s", [series])
        row = cursor.fetchone()
    return read_shifts(*row) if row else Shifts()


def read_shifts(
    points: str | None, baseline: str | None, outliers: str | None, unstable: bool | None
) -> Shifts:
    """Of the columns SHIFTS."""
    begun = json.loads(baseline) if baseline else None
    return Shifts(
        points=tuple(_shift(*each) for each in json.loads(points or "[]")),
        baseline=(begun[0], begun[1]) if begun else None,
        outliers=tuple(json.loads(outliers or "[]")),
        unstable=bool(unstable),
    )


def _shift(
    pk: str, commit: int, kind: str, state: str, change: float, low: float, high: float,
    regressed: bool, duel: float | None, message: str,
) -> Shift:  # fmt: skip
    return Shift(
        id=UUID(pk),
        commit=commit,
        kind=kind,
        state=state,
        change=change,
        interval=(low, high),
        regressed=regressed,
        duel=duel,
        message=message,
    )
