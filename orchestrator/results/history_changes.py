"""What a history marks of a series: its change points, its outliers, and where it begins anew.

In few columns, since histories are read often; `change_points` knows the rest.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from orchestrator.results.models import Baseline, ChangePoint, ChangeState, SeriesLook


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


def shifts_of(series: int, case: int) -> Shifts:
    """Change points that the last look still saw or that are sure, and what was found beside."""
    rows = (
        ChangePoint.objects.filter(series=series)
        .exclude(state=ChangeState.SUPERSEDED)
        .filter(Q(seen=True) | Q(state__in=[ChangeState.CONFIRMED, ChangeState.CONFIRMING]))
        .values_list(
            "pk", "commit", "kind", "state", "change", "low", "high", "regressed", "duel_change",
            "message",
        )
    )  # fmt: skip
    look = SeriesLook.objects.filter(series=series).values_list("outliers", "unstable").first()
    begun = Baseline.objects.filter(Q(series=series) | Q(case=case)).order_by("-pk")
    return Shifts(
        points=tuple(
            Shift(
                id=pk,
                commit=commit,
                kind=kind,
                state=state,
                change=change,
                interval=(low, high),
                regressed=regressed,
                duel=duel,
                message=message,
            )
            for pk, commit, kind, state, change, low, high, regressed, duel, message in rows
        ),
        baseline=begun.values_list("commit", "reason").first(),
        outliers=tuple(look[0]) if look else (),
        unstable=bool(look and look[1]),
    )
