"""The Celery tasks: they only wake things up. Each lasts seconds and may run twice or late."""

import logging
from uuid import UUID

from celery import shared_task

from orchestrator.accounts.selectors import member_for_user
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import PitwallError
from orchestrator.dispatch import engine
from orchestrator.runs import schedules, turns
from orchestrator.runs.models import Schedule, Trigger
from orchestrator.runs.services import RunRequest, create_run

logger = logging.getLogger(__name__)

ADVANCE = "orchestrator.dispatch.tasks.advance"


@shared_task(name="orchestrator.dispatch.tasks.pump")
def pump() -> None:
    """Gives free hosts to queued jobs, and wakes every job that is due."""
    turns.lease_queued_jobs()
    for job_id in turns.due_jobs():
        # A message that was not taken up soon is worthless: the next tick sends another.
        advance.apply_async(args=[str(job_id)], expires=10)


@shared_task(name=ADVANCE)
def advance(job_id: str) -> None:
    """Takes a job as many steps further as can be done without waiting."""
    for _ in range(4):
        if not engine.advance(UUID(job_id)):
            return


@shared_task(name="orchestrator.dispatch.tasks.sweep")
def sweep() -> None:
    """Releases what was left behind; a dead worker's turn runs out by itself."""
    released = turns.release_stale_leases()
    if released:
        logger.warning("released %s leases of ended jobs", released)


@shared_task(name="orchestrator.dispatch.tasks.claim_schedules")
def claim_schedules() -> None:
    """Starts the runs of the schedules that are due."""
    for schedule in schedules.claim_due(now=utc_now()):
        schedules.note_outcome(schedule=schedule, message=_start_run(schedule))


def _start_run(schedule: Schedule) -> str:
    try:
        run = create_run(
            member=member_for_user(schedule.created_by, schedule.team.slug),
            request=RunRequest(
                benchmark=schedule.benchmark.slug,
                project=schedule.benchmark.project.slug,
                baseline=schedule.baseline_ref,
                contenders=(schedule.contender_ref,),
                hosts=tuple(host.name for host in schedule.hosts.all()),
                rounds=schedule.rounds,
            ),
            trigger=Trigger.SCHEDULE,
            schedule=schedule,
        )
    except PitwallError as error:
        return f"no run was started: {error}"
    return f"started run {run.pk}"
