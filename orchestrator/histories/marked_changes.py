"""The marks of a history: change points, outliers, its baseline, and annotations.

They are read with few columns, since histories are read often; `change_points` reads the rest.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

#: Columns for a query with a `series`: change points, baseline, last detection, annotations.
SHIFTS = """
(
    SELECT jsonb_agg(jsonb_build_array(
        id, commit_id, kind, state, change, low, high, regressed, confirmed_change, message))
    FROM results_changepoint
    WHERE series_id = series.id AND state <> 'superseded'
        AND (seen OR state IN ('confirmed', 'small', 'confirming'))
), (
    SELECT jsonb_build_array(commit_id, reason) FROM results_baseline
    WHERE series_id = series.id OR case_id = series.case_id ORDER BY id DESC LIMIT 1
), (
    SELECT to_jsonb(outliers) FROM results_seriesdetection WHERE series_id = series.id
), (
    SELECT unstable FROM results_seriesdetection WHERE series_id = series.id
), (
    SELECT jsonb_agg(jsonb_build_array(
        note.id, note.commit_id, own.sha, own.position, note.text, author.username,
        note.created_at, note.edited_at,
        CASE WHEN note.series_id IS NOT NULL THEN 'series' WHEN note.case_id IS NOT NULL THEN 'case'
             WHEN note.benchmark_id IS NOT NULL THEN 'benchmark' ELSE 'project' END
        ) ORDER BY note.id)
    FROM results_annotation note
    JOIN benchmarks_commit own ON own.id = note.commit_id
    LEFT JOIN accounts_user author ON author.id = note.created_by_id
    WHERE note.project_id =
            (SELECT project_id FROM benchmarks_benchmark WHERE id = series.benchmark_id)
        AND (note.series_id = series.id OR note.case_id = series.case_id
             OR note.benchmark_id = series.benchmark_id
             OR num_nonnulls(note.series_id, note.case_id, note.benchmark_id) = 0)
)
"""
#: The lines on which an annotation is shown, by its scope.
SHOWN_ON = {
    "series": "this line alone",
    "case": "all metrics of this case, on all hosts",
    "benchmark": "all of this benchmark",
    "project": "all of this project",
}
#: The number of these columns.
PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A change point at the commit `commit`.

    `confirmed_change` is the result of the confirmation run, if there was one. `state` is one of
    `ChangeState`, `kind` one of `ChangeKind`.
    """

    id: UUID
    commit: int
    kind: str
    state: str
    change: float
    interval: tuple[float, float]
    regressed: bool
    confirmed_change: float | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedAnnotation:
    """An annotation at the commit `commit`, which is at `position` on the default branch, if at
    all.

    `scope`: series, case, benchmark or project. `author` is None if the user was removed.
    """

    id: UUID
    commit: int
    sha: str
    position: int | None
    text: str
    author: str | None
    created_at: datetime
    edited_at: datetime | None
    scope: str

    @property
    def short_sha(self) -> str:
        return self.sha[:10]

    @property
    def scope_text(self) -> str:
        return SHOWN_ON[self.scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """`baseline`: the commit at which the history begins again, and the reason.

    `outliers` are commits. `annotations` are oldest first.
    """

    points: tuple[Shift, ...] = ()
    baseline: tuple[int, str] | None = None
    outliers: tuple[int, ...] = ()
    unstable: bool = False
    annotations: tuple[PlacedAnnotation, ...] = ()


def load_shifts(series: int) -> Shifts:
    """Return the marks; change points are those of the last detection, and confirmed ones."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {SHIFTS} FROM results_series series WHERE id = %s", [series])
        row = cursor.fetchone()
    return read_shifts(*row) if row else Shifts()


def read_shifts(
    points: str | None,
    baseline: str | None,
    outliers: str | None,
    unstable: bool | None,
    annotations: str | None,
) -> Shifts:
    """Parse the columns SHIFTS."""
    begun = json.loads(baseline) if baseline else None
    return Shifts(
        points=tuple(_build_shift(*each) for each in json.loads(points or "[]")),
        baseline=(begun[0], begun[1]) if begun else None,
        outliers=tuple(json.loads(outliers or "[]")),
        unstable=bool(unstable),
        annotations=tuple(_build_annotation(*each) for each in json.loads(annotations or "[]")),
    )


def _build_shift(
    pk: str, commit: int, kind: str, state: str, change: float, low: float, high: float,
    regressed: bool, confirmed_change: float | None, message: str,
) -> Shift:  # fmt: skip
    return Shift(
        id=UUID(pk),
        commit=commit,
        kind=kind,
        state=state,
        change=change,
        interval=(low, high),
        regressed=regressed,
        confirmed_change=confirmed_change,
        message=message,
    )


def _build_annotation(
    pk: str, commit: int, sha: str, position: int | None, text: str, author: str | None,
    created: str, edited: str | None, scope: str,
) -> PlacedAnnotation:  # fmt: skip
    return PlacedAnnotation(
        id=UUID(pk),
        commit=commit,
        sha=sha,
        position=position,
        text=text,
        author=author,
        created_at=datetime.fromisoformat(created),
        edited_at=datetime.fromisoformat(edited) if edited else None,
        scope=scope,
    )
