"""Writes of schedules: rows claimed by a tick; cron arithmetic by `cronsim`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cronsim import CronSim, CronSimError
from django.db import IntegrityError, transaction
from django.db.models import Q

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.database.clock import read_database_time
from orchestrator.fleet import selectors as fleet
from orchestrator.runs import selectors
from orchestrator.runs.earlier_commits import load_tags
from orchestrator.runs.models import HostRole, Schedule
from orchestrator.runs.new_commits import load_newest_tagged, load_tip
from orchestrator.runs.plans import RunRequest, plan_run

#: The interval of checks of a branch for new commits.
LOOK_EVERY = timedelta(minutes=1)
#: A schedule that waits for a fetch is checked when it ends, at the latest after this time.
LOOK_AGAIN = timedelta(seconds=30)
_WAITING = "waiting for a fetch of the repository"
#: The delays of attempts after internal errors.
PAUSES = tuple(timedelta(seconds=each) for each in (30, 120, 600, 1800))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """What a schedule measures, and one start: the times (`cron`), a `branch` or `tags`.

    The refs are those of a RunRequest. With a branch or a pattern of tags, the new commit is the
    contender and none is named; the plan is checked for its newest commit.
    """

    name: str
    cron: str = ""
    branch: str = ""
    tags: str = ""
    benchmark: str
    baseline_ref: str = ""
    contender_ref: str = ""
    second_contender_ref: str = ""
    hosts: tuple[str, ...] = ()
    placements: tuple[Mapping[str, str], ...] = ()
    cases: str = ""
    pairwise: bool = False
    rounds: int | None = None
    builds: int | None = None
    resolution: float | None = None
    until: str = "rounds"
    budget_s: float | None = None
    wait_limit_s: float | None = None
    priority: str = "normal"
    project: str | None = None

    @property
    def follows(self) -> bool:
        return bool(self.branch or self.tags)


def describe_times(cron: str) -> str:
    """Describe the cron fields of a schedule, for example "At 03:00 every day"."""
    return str(CronSim(cron, utc_now()).explain())


def compute_next_time(cron: str, after: datetime) -> datetime:
    """Return the first time after `after` (aware, UTC) that matches the five cron fields."""
    try:
        return next(CronSim(cron, after))
    except (CronSimError, StopIteration) as error:
        raise InvalidRequestError(
            f"expected five cron fields such as 0 3 * * * (each day at 03:00 UTC), got {cron!r}",
            field="cron",
        ) from error


def create_schedule(*, member: Member, new: NewSchedule) -> Schedule:
    """Create a schedule; InvalidRequestError if its run could not be planned now."""
    member.require(Role.MEMBER, to="create a schedule")
    fields = _build_fields(member, new)
    schedule = Schedule(team=member.team, created_by=member.user, **fields)
    return _save_schedule(member, schedule, new, "schedule.created")


def change_schedule(*, member: Member, schedule_id: UUID, new: NewSchedule) -> Schedule:
    """Replace all settings except whether it is enabled, after the same checks.

    Its future runs have the permissions of the user who changed it.
    """
    member.require(Role.MEMBER, to="change a schedule")
    schedule = selectors.load_schedule(member, schedule_id)
    fields = _build_fields(member, new)
    followed = (schedule.branch, schedule.tags, schedule.benchmark)
    if followed == (new.branch, new.tags, fields["benchmark"]):
        # Commits since the last check must still be measured.
        fields.pop("seen_sha")
        fields.pop("seen_tags")
    for name, value in fields.items():
        setattr(schedule, name, value)
    schedule.created_by = member.user
    return _save_schedule(member, schedule, new, "schedule.changed")


def _build_fields(member: Member, new: NewSchedule) -> dict[str, Any]:
    """Return the fields of the row, if its run could be planned now."""
    now = utc_now()
    if not new.name.strip():
        raise InvalidRequestError("enter a name for the schedule", field="name")
    if sum(map(bool, (new.cron, new.branch, new.tags))) > 1:
        raise InvalidRequestError(
            "a schedule starts at times, for the commits of a branch or for tags: name one of them",
            field="tags" if new.tags else "branch",
        )
    # Before any lookup: an invalid time is the most likely mistake.
    next_at = now + LOOK_EVERY if new.follows else compute_next_time(new.cron, now)
    benchmark = benchmarks.load_benchmark(member, new.benchmark, new.project)
    tip = _load_tip(benchmark.project, new)
    plan = plan_run(member=member, request=_build_request_at_tip(new, tip))
    tags = [name for name, _ in load_tags(benchmark.project, new.tags)] if new.tags else None
    elsewhere = [{HostRole.TARGET.value: name} for name in new.hosts if ":" in name]
    return {
        "benchmark": benchmark,
        "name": new.name.strip()[:100],
        "cron": new.cron,
        "branch": new.branch,
        "tags": new.tags,
        "seen_sha": tip if new.branch else "",
        "seen_tags": tags,
        "baseline_ref": new.baseline_ref,
        "contender_ref": "" if new.follows else new.contender_ref,
        "second_contender_ref": "" if new.follows else new.second_contender_ref,
        "placements": [*elsewhere, *map(dict, new.placements)],
        "cases": new.cases.strip(),
        "pairwise": new.pairwise,
        "rounds": new.rounds,
        "builds": new.builds,
        "resolution": new.resolution,
        "until": plan.until,
        "budget_s": new.budget_s,
        "wait_limit_s": new.wait_limit_s,
        "priority": plan.priority,
        "next_at": next_at,
    }


def _save_schedule(member: Member, schedule: Schedule, new: NewSchedule, action: str) -> Schedule:
    names = [name for name in new.hosts if ":" not in name]
    try:
        with transaction.atomic():
            schedule.save()
            schedule.hosts.set(fleet.load_hosts_by_name(member, names))
            record_audit(member=member, action=action, subject=schedule)
    except IntegrityError as error:
        problem = f"the team already has a schedule named {new.name}; choose another name"
        raise ConflictError(problem) from error
    return selectors.load_schedule(member, schedule.pk)


def build_request(schedule: Schedule, *, contender: str = "") -> RunRequest:
    """Return the request for a run; `contender` is the new commit of its branch."""
    named = (schedule.contender_ref, schedule.second_contender_ref)
    return RunRequest(
        benchmark=schedule.benchmark.slug,
        project=schedule.benchmark.project.slug,
        baseline=schedule.baseline_ref,
        contenders=(contender,) if contender else tuple(ref for ref in named if ref),
        cases=schedule.cases,
        pairwise=schedule.pairwise,
        hosts=tuple(host.name for host in schedule.hosts.all()),
        placements=tuple(schedule.placements),
        rounds=schedule.rounds,
        builds=schedule.builds,
        until=schedule.until,
        budget_s=schedule.budget_s,
        wait_limit_s=schedule.wait_limit_s,
        priority=schedule.get_priority_display().lower(),
    )


def set_schedule_enabled(*, member: Member, schedule_id: UUID, enabled: bool) -> None:
    member.require(Role.MEMBER, to="change a schedule")
    schedule = selectors.load_schedule(member, schedule_id)
    # Commits from the time when it was disabled are skipped: it starts with the next check.
    next_at = utc_now() if schedule.follows else compute_next_time(schedule.cron, utc_now())
    Schedule.objects.filter(pk=schedule.pk).update(
        enabled=enabled, next_at=next_at, seen_sha="", seen_tags=None
    )
    action = "schedule.enabled" if enabled else "schedule.disabled"
    record_audit(member=member, action=action, subject=schedule)


def delete_schedule(*, member: Member, schedule_id: UUID) -> None:
    member.require(Role.MEMBER, to="delete a schedule")
    schedule = selectors.load_schedule(member, schedule_id)
    with transaction.atomic():
        record_audit(member=member, action="schedule.deleted", subject=schedule)
        schedule.delete()


def lock_due(*, now: datetime, without: Collection[UUID] = ()) -> Schedule | None:
    """Lock the schedule that has been due for longest until the end of the transaction.

    Schedules locked by other workers are skipped. Start its runs and call `record_outcome` in the
    same transaction, so that a crash in between changes nothing.
    """
    ready = Q(not_before=None) | Q(not_before__lte=now)
    due = Schedule.objects.filter(
        ready, enabled=True, next_at__lte=now, benchmark__deleted_at=None
    ).exclude(pk__in=without)
    due = due.select_related("team", "benchmark__project", "created_by").order_by("next_at", "pk")
    return due.select_for_update(skip_locked=True, of=("self",)).first()


def record_outcome(*, schedule: Schedule, now: datetime, message: str = "") -> None:
    """Move the schedule to its next time; several missed times cause one start."""
    later = now + LOOK_EVERY if schedule.follows else compute_next_time(schedule.cron, now)
    changes: dict[str, Any] = {
        "next_at": later,
        "not_before": None,
        "failures": 0,
        "fetch_requested_at": None,
    }
    if message:
        changes |= {"last_at": utc_now(), "last_message": message[:2000]}
    elif schedule.last_message.startswith(_WAITING):
        changes["last_message"] = ""
    Schedule.objects.filter(pk=schedule.pk).update(
        **changes, seen_sha=schedule.seen_sha, seen_tags=schedule.seen_tags
    )


def wait_for_fetch(schedule: Schedule, *, now: datetime, problem: str = "") -> None:
    """Keep the schedule due and check it again soon; `problem`: why the newest fetch failed."""
    changes: dict[str, Any] = {
        "not_before": now + LOOK_AGAIN,
        "fetch_requested_at": schedule.fetch_requested_at or read_database_time(),
    }
    if problem:
        message = f"{_WAITING}; the last attempt failed: {problem}"
        changes |= {"last_at": now, "last_message": message[:2000]}
    Schedule.objects.filter(pk=schedule.pk).update(**changes)


def end_waits(project_id: int) -> None:
    """End the wait of schedules for a fetch of this project, which has ended."""
    waiting = Schedule.objects.filter(benchmark__project=project_id)
    waiting.exclude(fetch_requested_at=None).update(not_before=None)


def reschedule(schedule: Schedule, *, now: datetime) -> None:
    """Try again later after an internal error; after the last attempt, wait for its next time."""
    failures = schedule.failures + 1
    if failures > len(PAUSES):
        message = "failed after several internal errors; the server's log has the details"
        record_outcome(schedule=schedule, now=now, message=message)
        return
    Schedule.objects.filter(pk=schedule.pk).update(
        not_before=now + PAUSES[failures - 1],
        failures=failures,
        fetch_requested_at=None,
        last_at=now,
        last_message="internal error; another attempt follows; the server's log has the details",
    )


def build_new_request(member: Member, new: NewSchedule) -> RunRequest:
    """Return the request for a run that it would start now."""
    benchmark = benchmarks.load_benchmark(member, new.benchmark, new.project)
    return _build_request_at_tip(new, _load_tip(benchmark.project, new))


def _load_tip(project: Project, new: NewSchedule) -> str:
    """Return the newest commit that it follows; empty if it starts at times."""
    if new.tags:
        return load_newest_tagged(project, new.tags)
    return load_tip(project, new.branch) if new.branch else ""


def _build_request_at_tip(new: NewSchedule, tip: str) -> RunRequest:
    contenders = (tip,) if tip else (new.contender_ref, new.second_contender_ref)
    return RunRequest(
        benchmark=new.benchmark,
        project=new.project,
        baseline=new.baseline_ref,
        contenders=tuple(ref for ref in contenders if ref),
        cases=new.cases,
        pairwise=new.pairwise,
        hosts=new.hosts,
        placements=new.placements,
        rounds=new.rounds,
        builds=new.builds,
        until=new.until,
        budget_s=new.budget_s,
        wait_limit_s=new.wait_limit_s,
        priority=new.priority,
    )
