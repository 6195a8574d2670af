"""Change points for pages and the API: reads, and decisions of members.

They are found in `segmentation`, measured again in `confirmations`, and traced to a commit in
`bisections`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Case, Commit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.results.models import (
    Baseline,
    Bisection,
    BisectionState,
    ChangedSeries,
    ChangePoint,
    ChangeState,
    Series,
    SeriesDetection,
)

MAX_REVISIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSummary:
    """A change point for a chart: dashed if `kind` is candidate.

    `commit` is the first of the new level, `before` the last of the old one. `state` is one of
    `ChangeState` (never superseded). `final`: it will not be measured again, and `message` says
    why. `run_id` is its latest confirmation run, `confirmed_change` its result, with
    `confirmed_interval`. `searching`: a bisection is running.
    """

    id: UUID
    series: int
    commit: Commit
    before: Commit
    kind: str
    change: float
    interval: tuple[float, float]
    p_value: float
    level_before: float
    level_after: float
    regressed: bool
    state: str
    final: bool
    seen: bool
    recent: bool
    message: str
    run_id: UUID | None
    confirmed_change: float | None
    confirmed_interval: tuple[float, float] | None
    culprit: Commit | None
    searching: bool
    found_at: datetime
    revisions: tuple[Mapping[str, str], ...]


def load_series_changes(series: Iterable[int]) -> dict[int, tuple[ChangeSummary, ...]]:
    """Return the change points of these series, oldest commit first, without superseded ones."""
    rows = with_parts(ChangePoint.objects.filter(series__in=list(series)))
    by_series: dict[int, list[ChangeSummary]] = defaultdict(list)
    for row in rows.order_by("commit__position", "pk"):
        by_series[row.series_id].append(build_change_summary(row))
    return {number: tuple(marks) for number, marks in by_series.items()}


def load_series_baselines(series: Iterable[Series]) -> dict[int, Baseline]:
    """Return the start of each series' history; only for series that have one.

    Of several, the latest decision counts.
    """
    rows = list(series)
    decisions = Baseline.objects.select_related("commit", "created_by").order_by("pk")
    by_series = {each.series_id: each for each in decisions.filter(series__in=rows)}
    by_case = {
        each.case_id: each for each in decisions.filter(case__in={row.case_id for row in rows})
    }
    baselines = {}
    for row in rows:
        both = [each for each in (by_series.get(row.pk), by_case.get(row.case_id)) if each]
        if both:
            baselines[row.pk] = max(both, key=lambda each: each.pk)
    return baselines


def find_series(case: Case, host: Host, metric: str) -> Series:
    """Return the series of a case, host and metric. Raise NotFoundError if it was not measured."""
    queryset = Series.objects.select_related("case__benchmark__project")
    series = queryset.filter(case=case, host=host, metric__key=metric).first()
    if series is None:
        problem = f"{metric} of this case was not measured on {host.name} yet; start a run there"
        raise NotFoundError(problem)
    return series


def load_baselines(member: Member) -> QuerySet[Baseline]:
    """Return all baselines of the team, newest first."""
    of_team = member.sees("series__benchmark__project") | member.sees("case__benchmark__project")
    parts = ("case__benchmark__project", "series__case__benchmark__project")
    return (
        Baseline.objects.filter(of_team)
        .select_related(*parts, "series__host", "series__metric", "commit", "created_by")
        .order_by("-pk")
    )


def load_baseline(member: Member, baseline_id: UUID) -> Baseline:
    baseline = load_baselines(member).filter(pk=baseline_id).first()
    if baseline is None:
        raise NotFoundError.build_for_team("baseline")
    return baseline


def get_baseline_case(baseline: Baseline) -> Case:
    """Return the case of the baseline or of its series."""
    case = baseline.series.case if baseline.series is not None else baseline.case
    assert case is not None, "a constraint of the table"
    return case


def load_change_points(member: Member) -> QuerySet[ChangePoint]:
    """Return the team's change points with related rows, without superseded ones."""
    return with_parts(ChangePoint.objects.filter(member.sees("series__benchmark__project")))


def change_for(member: Member, change_id: UUID) -> ChangePoint:
    change = load_change_points(member).filter(pk=change_id).first()
    if change is None:
        raise NotFoundError.build_for_team("change point")
    return change


def with_parts(rows: QuerySet[ChangePoint], *, every: bool = False) -> QuerySet[Any]:
    """Return the rows without superseded ones, unless `every`.

    `searching`: a bisection is running.
    """
    running = Bisection.objects.filter(change_point=OuterRef("pk"), state=BisectionState.RUNNING)
    kept = rows if every else rows.exclude(state=ChangeState.SUPERSEDED)
    return kept.select_related(
        "series__benchmark__project__team",
        "series__case",
        "series__host__profile",
        "series__metric",
        "commit",
        "before",
        "culprit",
    ).annotate(searching=Exists(running))


def build_change_summary(row: Any) -> ChangeSummary:
    """Return the mark for a row of `with_parts`."""
    confirmed_interval = None
    if row.confirmed_low is not None and row.confirmed_high is not None:
        confirmed_interval = (row.confirmed_low, row.confirmed_high)
    return ChangeSummary(
        id=row.pk,
        series=row.series_id,
        commit=row.commit,
        before=row.before,
        kind=row.kind,
        change=row.change,
        interval=(row.low, row.high),
        p_value=row.p_value,
        level_before=row.level_before,
        level_after=row.level_after,
        regressed=row.regressed,
        state=row.state,
        final=row.final,
        seen=row.seen,
        recent=row.recent,
        message=row.message,
        run_id=row.run_id,
        confirmed_change=row.confirmed_change,
        confirmed_interval=confirmed_interval,
        culprit=row.culprit,
        searching=row.searching,
        found_at=row.found_at,
        revisions=tuple(row.revisions),
    )


def dismiss(*, member: Member, change_id: UUID, reason: str) -> ChangePoint:
    """Dismiss a change point; it stays dismissed when more points arrive."""
    member.require(Role.MEMBER, to="dismiss a change point")
    change = change_for(member, change_id)
    reason = _check_reason(reason)
    with transaction.atomic():
        row = ChangePoint.objects.select_for_update().get(pk=change.pk)
        if row.state == ChangeState.DISMISSED:
            raise ConflictError("this change point is already dismissed; reload the page")
        row.state, row.message = ChangeState.DISMISSED, f"dismissed by {member.user}: {reason}"
        add_revision(row, row.message)
        row.save()
        Bisection.objects.filter(change_point=row, state=BisectionState.RUNNING).update(
            state=BisectionState.STOPPED,
            message="the change point was dismissed",
            ended_at=utc_now(),
        )
        record_audit(member=member, action="change_point.dismissed", subject=row.pk)
    return row


def store_baseline(
    *,
    member: Member,
    commit: Commit,
    reason: str,
    series: Series | None = None,
    case: Case | None = None,
) -> Baseline:
    """Start the history of a series, or of all series of a case, at `commit`.

    Give one of the two, of the member's team. Earlier measurements stay on the charts but are
    ignored; earlier change points are superseded at the next detection.
    """
    member.require(Role.MEMBER, to="start a history again")
    subject = series or case
    if subject is None or (series and case):
        raise InvalidRequestError("name a series or a case", field="series")
    benchmark = (case or series.case).benchmark if series or case else None  # type: ignore[union-attr]
    if benchmark is None or not member.sees_project(
        benchmark.project_id, benchmark.project.team_id
    ):
        raise NotFoundError.build_for_team("series")
    if commit.project_id != benchmark.project_id or commit.position is None:
        raise InvalidRequestError(
            f"{commit.short_sha} is not on the default branch of {benchmark.project.name}",
            field="commit",
        )
    with transaction.atomic():
        made = Baseline.objects.create(
            series=series,
            case=case,
            commit=commit,
            reason=_check_reason(reason),
            created_by=member.user,
        )
        _request_detection(made)
        record_audit(member=member, action="baseline.set", subject=made.pk)
    return made


def remove_baseline(*, member: Member, baseline_id: UUID) -> None:
    """Remove the start of a history: earlier measurements count again."""
    member.require(Role.MEMBER, to="remove a baseline")
    made = load_baseline(member, baseline_id)
    with transaction.atomic():
        _request_detection(made)
        record_audit(member=member, action="baseline.removed", subject=made.pk)
        made.delete()


def add_revision(row: ChangePoint, text: str) -> None:
    """Add a line to the revisions of a change point; the caller saves the row."""
    row.revised_at = utc_now()
    row.revisions = [*row.revisions, {"at": row.revised_at.isoformat(), "text": text}][
        -MAX_REVISIONS:
    ]


def _request_detection(baseline: Baseline) -> None:
    rows = Series.objects.all()
    rows = (
        rows.filter(pk=baseline.series_id)
        if baseline.series_id
        else rows.filter(case=baseline.case_id)
    )
    numbers = list(rows.values_list("pk", flat=True))
    # Detect again in the whole history.
    SeriesDetection.objects.filter(series__in=numbers).delete()
    ChangedSeries.objects.create(series=numbers)


def _check_reason(text: str) -> str:
    if not text.strip():
        raise InvalidRequestError("enter the reason, for the other members", field="reason")
    return text.strip()[:1000]
