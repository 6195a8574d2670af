"""Confirmation runs measure the two commits on both sides of a suspected change against each other.

They run interleaved in one run, on the host of the change point, with only the affected cases. A
change on one of our hosts raises no alert before its confirmation. Each step claims its rows first,
so that a tick may run twice and a restart loses nothing.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from orchestrator.accounts.members import Member, build_system_member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.core.errors import ConflictError, InvalidRequestError, PitwallError
from orchestrator.fleet.models import HostTransport
from orchestrator.regressions.change_points import add_revision, change_for
from orchestrator.regressions.confirmation_runs import (
    CASES_LENGTH,
    TooLittleTimeError,
    build_cases_expression,
    start_run,
)
from orchestrator.regressions.confirmation_verdicts import is_answered, store_own_outcome
from orchestrator.regressions.machine_time import compute_left_s, is_at_it
from orchestrator.regressions.pending_backfills import is_backfilled
from orchestrator.results.models import ChangePoint, ChangeState
from orchestrator.runs.cancelling import cancel_run
from orchestrator.runs.models import Run, Trigger
from orchestrator.runs.states import RUN_ENDED, RunState

logger = logging.getLogger(__name__)

#: A confirmation run that waits longer for its host is given up.
PATIENCE = timedelta(hours=6)
#: A confirmation run whose run failed is tried again until there were this many.
MOST_TRIES = 2

Group = tuple[int, UUID, int, int]


def advance_confirmations(now: datetime) -> None:
    """Judge ended confirmation runs, give up those without a host, and start due ones."""
    for row in _load_rows(state=ChangeState.CONFIRMING, run__state__in=RUN_ENDED):
        _run_guarded(judge, row.pk)
    queued = _load_rows(state=ChangeState.CONFIRMING, run__state=RunState.QUEUED)
    for row in queued.filter(run__created_at__lt=now - PATIENCE):
        _run_guarded(_abandon_confirmation, row.pk)
    _reset_orphans()
    for group in _group_wanted(now):
        _run_guarded(_start, group, now)


def confirm_now(*, member: Member, change_id: UUID) -> Run:
    """Start a confirmation run at once, whatever the project's settings are.

    Raise ConflictError while one is running, InvalidRequestError if nothing can be measured.
    """
    member.require(Role.MEMBER, to="start a confirmation run")
    change = change_for(member, change_id)
    if change.series.host.transport == HostTransport.EXTERNAL:
        raise InvalidRequestError(
            f"the external host {change.series.host.name} cannot measure again: send results"
        )
    with transaction.atomic():
        row = _load_rows(pk=change.pk).select_for_update(of=("self",)).get()
        if row.state == ChangeState.CONFIRMING:
            raise ConflictError("this change is already being measured again; wait for that run")
        run = _begin_confirmation(member, [row])
        record_audit(member=member, action="change_point.confirmation_requested", subject=row.pk)
    return run


def judge(change_id: UUID) -> None:
    """Store the result of an ended confirmation run for a change point, once."""
    with transaction.atomic():
        row = (
            _load_rows(pk=change_id, state=ChangeState.CONFIRMING, run__state__in=RUN_ENDED)
            .select_for_update(of=("self",), skip_locked=True)
            .first()
        )
        if row is None or row.run is None:
            return
        if store_own_outcome(row):
            return
        _reopen_unmeasured(row, row.run)
        add_revision(row, row.message)
        row.save()


def _reopen_unmeasured(row: ChangePoint, run: Run) -> None:
    again = run.state != RunState.CANCELLED and row.confirmation_runs < MOST_TRIES
    detail = run.message or "none of its blocks is valid"
    why = "was cancelled" if run.state == RunState.CANCELLED else f"measured nothing: {detail}"
    row.state, row.final = ChangeState.OPEN, not again
    row.message = f"{'another attempt follows' if again else 'not confirmed'}: its run {why}"[:2000]


def _abandon_confirmation(change_id: UUID) -> None:
    hours = PATIENCE.total_seconds() / 3600
    with transaction.atomic():
        row = (
            _load_rows(pk=change_id, state=ChangeState.CONFIRMING)
            .select_for_update(of=("self",))
            .first()
        )
        if row is None:
            return
        run, row.run, row.state, row.final = row.run, None, ChangeState.OPEN, True
        row.message = f"not confirmed: {row.series.host.name} was not free within {hours:.0f} hours"
        add_revision(row, row.message)
        row.save()
        team = row.series.benchmark.project.team
        if run is not None and run.state not in RUN_ENDED and run.cancel_requested_at is None:
            cancel_run(member=build_system_member(team), run_id=run.pk)


def _reset_orphans() -> None:
    """Request again confirmation runs whose run was deleted."""
    ChangePoint.objects.filter(state=ChangeState.CONFIRMING, run=None).update(
        state=ChangeState.OPEN
    )


def _group_wanted(now: datetime) -> list[list[UUID]]:
    """Return groups of change points that one confirmation run covers.

    Regressions come first, then those that are most certain.
    """
    rows = _load_rows(state=ChangeState.OPEN, final=False, seen=True, recent=True)
    groups: dict[Group, list[ChangePoint]] = defaultdict(list)
    for row in rows.order_by("-regressed", "kind", "found_at"):
        series = row.series
        groups[series.benchmark_id, series.host_id, row.before_id, row.commit_id].append(row)
    return [[row.pk for row in rows] for rows in groups.values()]


def _start(group: Sequence[UUID], now: datetime) -> None:
    """Start the confirmation run of a group, or store why it cannot start."""
    with transaction.atomic():
        rows = list(
            _load_rows(pk__in=group, state=ChangeState.OPEN, final=False)
            .select_for_update(of=("self",), skip_locked=True)
            .order_by("pk")
        )
        rows = [row for row in rows if not is_answered(row)]
        if not rows:
            return
        project, host = rows[0].series.benchmark.project, rows[0].series.host
        if not project.confirm_changes:
            _record_message(rows, "not confirmed: the project's settings disable it", final=True)
        elif is_backfilled([row.series for row in rows], rows[0].before, rows[0].commit):
            _record_message(rows, "waits for a backfill, which measures commits of this change")
        elif is_at_it(host):
            _record_message(rows, f"waits for another confirmation run on {host.name}")
        elif compute_left_s(project, now) <= 0:
            minutes = project.machine_minutes_a_day
            _record_message(rows, f"waits: today's {minutes} minutes of machine time are used up")
        else:
            _try_to_begin(rows, compute_left_s(project, now))


def _try_to_begin(rows: Sequence[ChangePoint], budget_s: float) -> None:
    try:
        with transaction.atomic():
            _begin_confirmation(
                build_system_member(rows[0].series.benchmark.project.team), rows, budget_s
            )
    except TooLittleTimeError as error:
        _record_message(rows, f"waits: {error}")
    except PitwallError as error:
        _record_message(rows, f"not confirmed: {error}"[:2000], final=True)


def _begin_confirmation(
    member: Member, rows: Sequence[ChangePoint], budget_s: float | None = None
) -> Run:
    """Start one run for change points of one benchmark and host with the same two commits.

    Cases beyond the limit of an expression follow in the next tick.
    """
    rows = _select_fitting(rows)
    first = rows[0]
    run = start_run(
        member=member,
        series=[row.series for row in rows],
        good=first.before,
        commit=first.commit,
        trigger=Trigger.CONFIRM,
        budget_s=budget_s,
    )
    for row in rows:
        row.state, row.run, row.final = ChangeState.CONFIRMING, run, False
        row.confirmation_runs += 1
        row.message = f"measured again: {row.before.short_sha} against {row.commit.short_sha}"
        add_revision(row, row.message)
        row.save()
    return run


def _select_fitting(rows: Sequence[ChangePoint]) -> Sequence[ChangePoint]:
    for count in range(len(rows), 1, -1):
        if len(build_cases_expression(row.series.case for row in rows[:count])) <= CASES_LENGTH:
            return rows[:count]
    return rows[:1]


def _record_message(rows: Iterable[ChangePoint], message: str, *, final: bool = False) -> None:
    for row in rows:
        if (row.message, row.final) != (message, final):
            row.message, row.final = message, final
            add_revision(row, message)
            row.save()


def _load_rows(**which: object) -> QuerySet[ChangePoint]:
    return ChangePoint.objects.filter(series__benchmark__deleted_at=None, **which).select_related(
        "series__benchmark__project__team",
        "series__host",
        "series__case",
        "series__metric",
        "commit",
        "before",
        "run",
    )


def _run_guarded(step: Callable[..., object], *given: object) -> None:
    """An error in one change point must not stop the others."""
    try:
        step(*given)
    except Exception:
        logger.exception("a confirmation run cannot be processed: %s", given)
