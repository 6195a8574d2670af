"""Golden runs: a host measures the same commit regularly, to detect its own drift.

The package `calibration` evaluates the results.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.refs import resolve_ref
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.fleet import selectors as fleet
from orchestrator.fleet.models import HostState
from orchestrator.runs.models import GoldenCheck, Job, Run, Trigger
from orchestrator.runs.services import RunRequest, create_run
from orchestrator.runs.states import JOB_COMPLETED

MAX_HOURS = 24 * 366
MAX_JOBS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGolden:
    """The benchmark and commit, and the interval: hours, finished jobs, or both."""

    benchmark: str
    commit: str
    project: str | None = None
    every_hours: int | None = None
    every_jobs: int | None = None
    tolerance: float = 0.05


def set_golden(*, member: Member, host_id: UUID, new: NewGolden) -> GoldenCheck:
    """Create or change the golden run of a host. A new one is due immediately.

    Another benchmark or commit starts without earlier values; a current run of the previous one is
    not evaluated.
    """
    member.require(Role.MEMBER, to="set a host's golden run")
    host = fleet.load_own_host(member, host_id)
    _check_often(new)
    benchmark = benchmarks.load_benchmark(member, new.benchmark, new.project)
    benchmarks.load_latest_definition(benchmark)
    commit = resolve_ref(project=benchmark.project, ref=new.commit)
    known = GoldenCheck.objects.filter(host=host).first()
    changes: dict[str, Any] = {
        "benchmark": benchmark,
        "commit": commit,
        "every_hours": new.every_hours,
        "every_jobs": new.every_jobs,
        "tolerance": new.tolerance,
        "created_by": member.user,
    }
    if known is None or (known.benchmark, known.commit) != (benchmark, commit):
        changes |= {"last_run": None, "last_at": None, "judged": True, "message": ""}
        changes |= {"repeats": False}
    with transaction.atomic():
        check, _ = GoldenCheck.objects.update_or_create(host=host, defaults=changes)
        record_audit(member=member, action="golden.set", subject=check)
    return check


def remove_golden(*, member: Member, host_id: UUID) -> None:
    """Remove the golden run of the host; results of its runs are kept."""
    member.require(Role.MEMBER, to="remove a host's golden run")
    host = fleet.load_host(member, host_id)
    with transaction.atomic():
        if GoldenCheck.objects.filter(host=host).delete()[0]:
            record_audit(member=member, action="golden.removed", subject=host)


def load_due_golden_checks(now: datetime) -> list[GoldenCheck]:
    """Return the checks that need a run now: the host is ready, and no run is under way."""
    ready = GoldenCheck.objects.filter(judged=True, host__state=HostState.READY)
    return [check for check in _join_parts(ready) if _is_due(check, now)]


def load_waiting_golden_checks() -> list[GoldenCheck]:
    """Return the checks whose run is under way, or was not evaluated yet."""
    return list(_join_parts(GoldenCheck.objects.filter(judged=False)))


def start_golden(check: GoldenCheck, now: datetime) -> Run | None:
    """Queue a run of the check; None if another tick did, or if it is impossible.

    The row is locked while the run is created: both changes are committed, or neither.
    """
    try:
        with transaction.atomic():
            return _start(check, now)
    except PitwallError as error:
        # Store the time as well, or the next tick would try again immediately.
        GoldenCheck.objects.filter(pk=check.pk, judged=True, last_at=check.last_at).update(
            last_at=now, repeats=False, message=f"no golden run was started: {error}"[:2000]
        )
        return None


def _start(check: GoldenCheck, now: datetime) -> Run | None:
    mine = GoldenCheck.objects.select_for_update(skip_locked=True).filter(
        pk=check.pk, judged=True, last_at=check.last_at
    )
    if mine.first() is None:
        return None
    run = create_run(
        member=load_member(check.created_by, check.host.team.slug),
        request=RunRequest(
            benchmark=check.benchmark.slug,
            project=check.benchmark.project.slug,
            baseline=check.commit.sha,
            contenders=(),
            hosts=(check.host.name,),
            # New builds would differ, and the host would seem to drift.
            builds=1,
            priority="high",
        ),
        trigger=Trigger.GOLDEN,
    )
    GoldenCheck.objects.filter(pk=check.pk).update(
        judged=False, last_run=run, last_at=now, repeats=False
    )
    return run


def _join_parts(checks: QuerySet[GoldenCheck]) -> QuerySet[GoldenCheck]:
    return (
        checks.filter(benchmark__deleted_at=None)
        .select_related("host__team", "benchmark__project", "commit", "created_by", "last_run")
        .order_by("pk")
    )


def _is_due(check: GoldenCheck, now: datetime) -> bool:
    if check.last_at is None or check.repeats:
        return True
    if check.every_hours and now - check.last_at >= timedelta(hours=check.every_hours):
        return True
    return bool(check.every_jobs) and _count_jobs_since(check) >= (check.every_jobs or 0)


def _count_jobs_since(check: GoldenCheck) -> int:
    """Count the jobs that the host has finished, in any role, since the last golden run."""
    jobs = Job.objects.filter(
        Q(host=check.host) | Q(placements__host=check.host),
        state__in=JOB_COMPLETED,
        ended_at__gt=check.last_at,
    ).exclude(run__trigger=Trigger.GOLDEN)
    return jobs.distinct().count()


def _check_often(new: NewGolden) -> None:
    if not new.every_hours and not new.every_jobs:
        raise InvalidRequestError(
            "set an interval: a number of hours, a number of jobs, or both", field="every_hours"
        )
    for field, value, most in (
        ("every_hours", new.every_hours, MAX_HOURS),
        ("every_jobs", new.every_jobs, MAX_JOBS),
    ):
        if value is not None and not 1 <= value <= most:
            raise InvalidRequestError(f"expected 1 to {most}, got {value}", field=field)
    if not 0.001 <= new.tolerance <= 1:
        raise InvalidRequestError(
            f"expected a share from 0.001 to 1, got {new.tolerance}", field="tolerance"
        )
