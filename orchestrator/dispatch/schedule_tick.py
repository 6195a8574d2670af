"""The action of a due schedule: one run, or one run for each new commit of its branch or tags."""

import logging
from datetime import datetime
from uuid import UUID

from django.db import DatabaseError, transaction

from orchestrator.accounts.selectors import load_member
from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.refs import TRIES_UNWATCHED, FetchRunningError, resolve_after_fetch
from orchestrator.calibration.resolution import with_rounds
from orchestrator.core.errors import PitwallError
from orchestrator.runs import schedules
from orchestrator.runs.models import Schedule, Trigger
from orchestrator.runs.new_commits import NewCommits, find_new_commits
from orchestrator.runs.services import create_run

logger = logging.getLogger(__name__)

#: The limit of schedules in one tick; the next tick continues.
MOST_A_TICK = 100


def start_due(now: datetime) -> int:
    """Start the schedules that are due, one after the other; return how many were processed.

    Each has a separate transaction with its result, so a crash loses none and starts none twice. A
    schedule that fails does not stop the others.
    """
    seen: list[UUID] = []
    while len(seen) < MOST_A_TICK:
        schedule = _start_next(now, seen)
        if schedule is None:
            break
        seen.append(schedule.pk)
    return len(seen)


def _start_next(now: datetime, seen: list[UUID]) -> Schedule | None:
    schedule = None
    try:
        with transaction.atomic():
            schedule = schedules.lock_due(now=now, without=seen)
            if schedule is not None:
                _start(schedule, now)
    except FetchRunningError as error:
        assert schedule is not None, "only a schedule needs a fetch"
        with transaction.atomic():
            schedules.wait_for_fetch(schedule, now=now, problem=error.problem)
            request_fetch(error.project, urgent=False, since=schedule.fetch_requested_at)
    except Exception:
        if schedule is None:
            raise
        logger.exception("the schedule %s could not be started", schedule.pk)
        schedules.reschedule(schedule, now=now)
    return schedule


def _start(schedule: Schedule, now: datetime) -> None:
    """Start the runs; names are from a fetch that started after the schedule was first due."""
    with resolve_after_fetch(lambda: schedule.fetch_requested_at, tries=TRIES_UNWATCHED):
        message = _start_for_new_commits(schedule) if schedule.follows else _start_run(schedule)
    schedules.record_outcome(schedule=schedule, now=now, message=message)


def _start_for_new_commits(schedule: Schedule) -> str:
    """Return the results of the new commits; empty if there are none."""
    try:
        commits = find_new_commits(schedule)
    except FetchRunningError:
        raise
    except PitwallError as error:
        what = f"the branch {schedule.branch}" if schedule.branch else f"tags {schedule.tags}"
        return f"{what} could not be read: {error}"
    messages = [f"{sha[:10]}: {_start_for(schedule, sha)}" for sha in commits.shas]
    schedule.seen_sha = commits.tip
    if schedule.tags:
        schedule.seen_tags = list(commits.tags)
    return "; ".join([*messages, *_format_skipped_commits(commits)]) if messages else ""


def _format_skipped_commits(commits: NewCommits) -> list[str]:
    many = f"{commits.skipped} older commits came with the same push and were left out"
    return [many] if commits.skipped else []


def _start_for(schedule: Schedule, sha: str) -> str:
    """Return the result of one commit; an error does not stop other commits."""
    try:
        with transaction.atomic():
            return _start_run(schedule, sha)
    except (FetchRunningError, DatabaseError):
        raise
    except Exception:
        logger.exception("the schedule %s could not start %s", schedule.pk, sha)
        return "no run was started: internal error; the server's log has the details"


def _start_run(schedule: Schedule, contender: str = "") -> str:
    try:
        member = load_member(schedule.created_by, schedule.team.slug)
        request = schedules.build_request(schedule, contender=contender)
        if schedule.resolution is not None:
            request = with_rounds(member=member, request=request, change=schedule.resolution)
        run = create_run(
            member=member, request=request, trigger=Trigger.SCHEDULE, schedule=schedule
        )
    except FetchRunningError:
        raise
    except PitwallError as error:
        return f"no run was started: {error}"
    return f"started run {run.pk}"
