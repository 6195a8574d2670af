"""The Celery tasks: they only wake things up. Each lasts seconds and may run twice or late."""

import logging
from uuid import UUID

from celery import shared_task

from orchestrator.accounts.pruning import prune_sessions, prune_tokens
from orchestrator.alerts import alert_rules, deliveries, events
from orchestrator.benchmarks import fetch_requests, fetching, tidying
from orchestrator.calibration import calibrations, golden
from orchestrator.comparisons.verdict_cache import store_missing_verdicts
from orchestrator.core.clock import utc_now
from orchestrator.dispatch import checkup, engine, schedule_tick
from orchestrator.dispatch.shares import SHARES
from orchestrator.dispatch.wakeups import wake_forges
from orchestrator.fleet.check_requests import due_requests
from orchestrator.forges import pr_sync
from orchestrator.forges.webhooks import forget_old
from orchestrator.measurements.import_steps import import_some, prune_imports
from orchestrator.regressions import bisections, confirmations
from orchestrator.regressions.segmentation import look_at_changed
from orchestrator.retention.pruning import prune_due
from orchestrator.retention.storage import measure_stale
from orchestrator.runs import claims, leasing, schedules
from orchestrator.runs.idempotency import prune_keys

logger = logging.getLogger(__name__)

ADVANCE = "orchestrator.dispatch.tasks.advance"


#: A job that is late by so much was forgotten by its worker, or its message was lost.
OVERDUE_S = 2.0
#: So often batches of written series are processed in one task; the rest is left to the next.
LOOKS_A_TURN = 10
#: A poll that is due so soon is scheduled by the poll before; later ones are left to the pump.
SOON_S = 30.0


@shared_task(name="orchestrator.dispatch.tasks.pump")
def pump() -> None:
    """Gives free hosts to queued jobs, and wakes every job that is due."""
    for job_id in leasing.lease_queued_jobs():
        wake_job(job_id)
    for job_id in claims.due_jobs(late_by_s=OVERDUE_S):
        wake_job(job_id)
    for host_id in due_requests():
        check_host.apply_async(args=[str(host_id)], expires=10)


@shared_task(name=ADVANCE)
def advance(job_id: str) -> None:
    """Takes a job as far as can be done without waiting, and schedules the next poll."""
    wait_s = engine.advance(UUID(job_id))
    if wait_s is None:
        # The job may have ended: its hosts are free for the next ones.
        pump()
    elif wait_s < SOON_S:
        wake_job(UUID(job_id), in_s=wait_s)


@shared_task(name="orchestrator.dispatch.tasks.check_host")
def check_host(host_id: str) -> None:
    """The checks of one host that somebody asked for."""
    checkup.carry_out(UUID(host_id))


def wake_job(job_id: UUID, *, in_s: float = 0.0) -> None:
    """A message that was not taken up soon is worthless: the pump's next tick sends another."""
    advance.apply_async(args=[str(job_id)], countdown=in_s, expires=in_s + 10)


@shared_task(name="orchestrator.dispatch.tasks.sweep")
def sweep() -> None:
    """Releases what was left behind; a dead worker's claim expires by itself."""
    released = leasing.release_stale_leases()
    if released:
        logger.warning("released %s leases of ended jobs", released)
    claims.fail_jobs_of_retired_hosts()


@shared_task(name="orchestrator.dispatch.tasks.store_verdicts")
def store_verdicts() -> None:
    """Stores the verdicts of runs that have ended."""
    store_missing_verdicts()


@shared_task(name="orchestrator.dispatch.tasks.claim_schedules")
def claim_schedules() -> None:
    """Starts the runs of the schedules that are due."""
    schedule_tick.start_due(utc_now())


@shared_task(name=fetch_requests.TASK)
def fetch_repositories() -> None:
    """Runs fetches that are due until none is left; it lasts as long as git takes. Only the worker
    of the queue of fetches takes it up."""
    while (project_id := fetching.run_next_fetch()) is not None:
        schedules.end_waits(project_id)
        wake_forges()
        fetching.collect_garbage(project_id)


@shared_task(name="orchestrator.dispatch.tasks.check_hosts")
def check_hosts() -> None:
    """Starts the golden jobs that are due, and judges those and calibrations that have ended."""
    golden.tick(utc_now())
    calibrations.tick()


@shared_task(name="orchestrator.dispatch.tasks.prune_results")
def prune_results() -> None:
    """Takes away some of what projects keep no longer; the next tick goes on. Then counts what is
    left, for teams whose storage has a limit."""
    prune_due(utc_now())
    measure_stale(utc_now())


@shared_task(name="orchestrator.dispatch.tasks.import_results")
def import_results() -> None:
    """One step of one import that waits; the next step is ordered at once."""
    if import_some():
        import_results.apply_async(expires=10)


@shared_task(name="orchestrator.dispatch.tasks.remove_ended")
def remove_ended() -> None:
    """Removes some of what ended long ago: sessions, tokens, idempotency keys and imports."""
    for prune in (prune_sessions, prune_tokens, prune_keys, prune_imports):
        try:
            prune()
        except Exception:
            # The trouble of one kind must not keep the others.
            logger.exception("%s failed", prune.__name__)


@shared_task(name="orchestrator.dispatch.tasks.look_for_changes")
def look_for_changes() -> None:
    """Looks for change points in the series that were written to since the last task."""
    for _ in range(LOOKS_A_TURN):
        if not look_at_changed():
            return


@shared_task(name="orchestrator.dispatch.tasks.follow_changes")
def follow_changes() -> None:
    """Has suspected changes measured again, searches the commits of those confirmed, and raises
    alerts of them."""
    now = utc_now()
    confirmations.tick(now)
    bisections.tick(now)
    alert_rules.tick(now)


@shared_task(name="orchestrator.dispatch.tasks.tell")
def tell() -> None:
    """Notes what channels are to tell of, and wakes each delivery that is due."""
    events.tick(utc_now())
    for delivery_id in deliveries.due_deliveries(utc_now()):
        deliver.apply_async(args=[str(delivery_id)], expires=10)


@shared_task(name="orchestrator.dispatch.tasks.deliver")
def deliver(delivery_id: str) -> None:
    """One try of one delivery, unless its team holds its share of the threads."""
    with SHARES.admit(deliveries.team_of(UUID(delivery_id))) as admitted:
        if admitted:
            deliveries.deliver(UUID(delivery_id), utc_now())


@shared_task(name="orchestrator.dispatch.tasks.follow_forges")
def follow_forges() -> None:
    """Wakes each pull request that is due, and forgets old deliveries of forges."""
    for pull_id in pr_sync.due_pulls():
        follow_pull.apply_async(args=[pull_id], expires=10)
    forget_old(utc_now())


@shared_task(name="orchestrator.dispatch.tasks.follow_pull")
def follow_pull(pull_id: int) -> None:
    """Takes one pull request further, unless its team holds its share of the threads: a later tick
    wakes it again then."""
    with SHARES.admit(pr_sync.team_of(pull_id)) as admitted:
        if admitted:
            pr_sync.follow(pull_id)


@shared_task(name="orchestrator.dispatch.tasks.tidy_repositories")
def tidy_repositories() -> None:
    """Removes mirrors without a project, and passwords from addresses of older versions."""
    tidying.tick()
