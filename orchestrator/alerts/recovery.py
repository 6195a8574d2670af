"""Detect whether a later commit restored the level from before a regression."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.alerts.models import Alert
from orchestrator.benchmarks.models import Commit
from orchestrator.results.models import CHANGE_REAL, ChangeKind, ChangePoint, ChangeState

#: Largest remainder of a regression that counts as fixed, as a share of it: levels have noise.
LEFT = 0.25
_NOTHING = (ChangeState.REFUTED, ChangeState.DISMISSED, ChangeState.SUPERSEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """The commit that restored the level, up to `left`.

    `left` is a change relative to before the regression. `sure`: a confirmation run confirmed it,
    or it is certain and cannot be measured again.
    """

    commit: Commit
    left: float
    sure: bool


def find_fix(alert: Alert) -> Fix | None:
    """Return the last commit of the fix; None unless all series are back at their level."""
    rows = [row for row in alert.change_points.all() if row.state not in _NOTHING]
    shifts = ChangePoint.objects.filter(
        series__in={row.series_id for row in rows}, commit__position__isnull=False
    ).exclude(state__in=_NOTHING)
    known = list(shifts.select_related("commit").order_by("commit__position"))
    results = [
        _find_series_fix(row, [each for each in known if each.series_id == row.series_id])
        for row in rows
    ]
    fixes = [each for each in results if each is not None]
    if not fixes or len(fixes) < len(results):
        return None
    last = max(fixes, key=lambda each: each.commit.position or 0)
    worst = max(fixes, key=lambda each: abs(each.left))
    return Fix(commit=last.commit, left=worst.left, sure=all(each.sure for each in fixes))


def _find_series_fix(row: ChangePoint, shifts: Sequence[ChangePoint]) -> Fix | None:
    """Multiply the later changes: this works across another host or definition, unlike levels."""
    factor, sure = 1 + row.change, True
    for each in _select_points_after(row, shifts):
        factor *= 1 + each.change
        sure = sure and _is_sure(each)
        left = factor - 1
        # A larger change in the same direction is worse, not fixed.
        if not each.regressed and left * row.change <= LEFT * row.change**2:
            return Fix(commit=each.commit, left=left, sure=sure)
    return None


def _select_points_after(row: ChangePoint, shifts: Iterable[ChangePoint]) -> list[ChangePoint]:
    """Return the later change points that still count, oldest commit first."""
    if row.commit.position is None:
        return []
    return [
        each
        for each in shifts
        if (each.commit.position or 0) > row.commit.position
        and (each.seen or each.state in CHANGE_REAL)
    ]


def _is_sure(row: ChangePoint) -> bool:
    if row.state in CHANGE_REAL:
        return True
    unanswered = row.confirmed_change is None and row.final
    return row.state == ChangeState.OPEN and row.kind == ChangeKind.ALERT and unanswered
