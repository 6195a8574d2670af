"""Writes of schedules: rows of our own, claimed by a tick; cron arithmetic from `cronsim`."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cronsim import CronSim, CronSimError
from django.db import IntegrityError, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.choice import choose
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Benchmark
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.fleet import selectors as fleet
from orchestrator.runs import selectors
from orchestrator.runs.ending import check_budget, check_rounds, until_of
from orchestrator.runs.models import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """What a schedule measures; without a contender it is the baseline alone."""

    name: str
    cron: str
    benchmark: str
    baseline_ref: str
    contender_ref: str
    hosts: tuple[str, ...]
    cases: str = ""
    pairwise: bool = False
    rounds: int | None = None
    until: str = "rounds"
    budget_s: float | None = None
    project: str | None = None


def next_time(cron: str, after: datetime) -> datetime:
    """The first instant after `after` (aware, UTC) that the five cron fields name."""
    try:
        return next(CronSim(cron, after))
    except (CronSimError, StopIteration) as error:
        raise InvalidRequestError(
            f"expected five cron fields such as 0 3 * * * (each day at 03:00 UTC), got {cron!r}",
            field="cron",
        ) from error


def create_schedule(*, member: Member, new: NewSchedule) -> Schedule:
    member.require(Role.MEMBER, to="make a schedule")
    if not new.name.strip():
        raise InvalidRequestError("give the schedule a name", field="name")
    benchmark = benchmarks.benchmark_for(member, new.benchmark, new.project)
    _check_cases(benchmark, new.cases)
    until = until_of(new.until, alone=not new.contender_ref)
    check_rounds(until, new.rounds)
    check_budget(new.budget_s)
    hosts = fleet.hosts_named(member, list(new.hosts))
    if not hosts:
        raise InvalidRequestError("choose at least one host", field="hosts")
    try:
        with transaction.atomic():
            schedule = Schedule.objects.create(
                team=member.team,
                benchmark=benchmark,
                name=new.name.strip()[:100],
                cron=new.cron,
                baseline_ref=new.baseline_ref,
                contender_ref=new.contender_ref,
                cases=new.cases.strip(),
                pairwise=new.pairwise,
                rounds=new.rounds,
                until=until,
                budget_s=new.budget_s,
                created_by=member.user,
                next_at=next_time(new.cron, utc_now()),
            )
            schedule.hosts.set(hosts)
            record_audit(member=member, action="schedule.created", subject=schedule)
    except IntegrityError as error:
        raise ConflictError(f"the team has a schedule named {new.name} already") from error
    return schedule


def set_schedule_enabled(*, member: Member, schedule_id: UUID, enabled: bool) -> None:
    member.require(Role.MEMBER, to="change a schedule")
    schedule = selectors.schedule_for(member, schedule_id)
    Schedule.objects.filter(pk=schedule.pk).update(
        enabled=enabled, next_at=next_time(schedule.cron, utc_now())
    )
    action = "schedule.enabled" if enabled else "schedule.disabled"
    record_audit(member=member, action=action, subject=schedule)


def delete_schedule(*, member: Member, schedule_id: UUID) -> None:
    member.require(Role.MEMBER, to="delete a schedule")
    schedule = selectors.schedule_for(member, schedule_id)
    with transaction.atomic():
        record_audit(member=member, action="schedule.deleted", subject=schedule)
        schedule.delete()


def claim_due(*, now: datetime) -> list[Schedule]:
    """The schedules that are due, each moved on to its next time: whoever gets one runs it.

    The conditional UPDATE is the claim, so two ticks at once never start a run twice. Times
    missed while nothing ran are made up for once, not once each.
    """
    due = Schedule.objects.filter(enabled=True, next_at__lte=now).select_related(
        "team", "benchmark__project", "created_by"
    )
    claimed = []
    for schedule in due:
        later = next_time(schedule.cron, now)
        mine = Schedule.objects.filter(pk=schedule.pk, enabled=True, next_at=schedule.next_at)
        if mine.update(next_at=later, last_at=now):
            claimed.append(schedule)
    return claimed


def note_outcome(*, schedule: Schedule, message: str) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(last_message=message[:2000])


def _check_cases(benchmark: Benchmark, expression: str) -> None:
    if not expression.strip():
        return
    spec = benchmarks.spec_of(benchmarks.latest_definition(benchmark))
    choose(spec, expand(spec), expression)
