"""The Celery tasks that may take long; each is idempotent and may run twice or late.

They use results, git servers, forges and channels, and remove data. They have a separate worker, so
that they delay no step of a job (`config/background_worker.py`).
"""

import logging
import threading
from collections.abc import Callable
from uuid import UUID

from celery import shared_task
from django.conf import settings

from orchestrator.accounts.pruning import prune_sessions, prune_tokens
from orchestrator.alerts import alert_rules, deliveries, events
from orchestrator.benchmarks import fetch_requests, fetching, tidying
from orchestrator.calibration import calibrations, golden
from orchestrator.comparisons.verdict_cache import store_missing_verdicts
from orchestrator.core.clock import utc_now
from orchestrator.dispatch import schedule_tick, wakeups
from orchestrator.dispatch.shares import BACKGROUND_SHARES
from orchestrator.dispatch.wakeups import wake_delivery, wake_forges, wake_imports, wake_pull
from orchestrator.forges import pr_sync
from orchestrator.forges.webhooks import delete_old_webhooks
from orchestrator.measurements.import_steps import import_some, prune_imports
from orchestrator.regressions import bisections, confirmations
from orchestrator.regressions.segmentation import detect_next_series
from orchestrator.retention.abandoned_drafts import delete_abandoned_drafts
from orchestrator.retention.deletions import remove_deleted
from orchestrator.retention.pruning import prune_due
from orchestrator.retention.storage import measure_stale
from orchestrator.runs import claims, leasing, schedules
from orchestrator.runs.idempotency import prune_keys
from orchestrator.runs.wait_limits import fail_overdue_jobs

logger = logging.getLogger(__name__)

#: The limit of batches of written series in one task; the next task processes the rest.
MOST_DETECTIONS = 10
#: The fetches of this process at once.
_FETCH_SLOTS = threading.BoundedSemaphore(settings.FETCH_SLOTS)


@shared_task(name=wakeups.PROCESS_RESULTS)
def process_results() -> None:
    """Use new results; each step uses what the steps before it stored.

    Verdicts and change points are stored, calibrations and golden runs judged, suspected changes
    measured again and bisected, alerts raised, and channels notified.
    """
    _run_each(
        store_missing_verdicts,
        _detect_change_points,
        calibrations.judge_calibrations,
        _advance_golden_checks,
        _advance_changes,
        _notify_channels,
    )


@shared_task(name=wakeups.START_DUE_WORK)
def start_due_work() -> None:
    """Start the runs of due schedules, wake due pull requests, and release lost leases."""
    _run_each(_release_lost_work, claim_schedules, _sync_forges)


def _run_each(*steps: Callable[[], object]) -> None:
    """Run all steps: an error in one must not stop the others."""
    for step in steps:
        try:
            step()
        except Exception:
            logger.exception("%s failed", step.__name__)


def _release_lost_work() -> None:
    """End what waits for nothing. A dead worker's claim expires by itself."""
    released = leasing.release_stale_leases()
    if released:
        logger.warning("released %s leases of ended jobs", released)
    claims.fail_jobs_on_retired_hosts()
    fail_overdue_jobs()


def claim_schedules() -> None:
    """Start the runs of the schedules that are due."""
    schedule_tick.start_due(utc_now())


def _detect_change_points() -> None:
    """Detect change points in the series that were written since the last task."""
    for _ in range(MOST_DETECTIONS):
        if not detect_next_series():
            return


def _advance_golden_checks() -> None:
    golden.advance_golden_checks(utc_now())


def _advance_changes() -> None:
    """Start confirmation runs of suspected changes, bisect confirmed ones, and raise alerts."""
    now = utc_now()
    confirmations.advance_confirmations(now)
    bisections.advance_bisections(now)
    alert_rules.apply_alert_rules(now)


@shared_task(name=fetch_requests.TASK)
def fetch_repositories() -> None:
    """Execute due fetches until none is left; the duration is that of git.

    If all slots of this process are taken, the first one that is free goes on with what is due.
    """
    if not _FETCH_SLOTS.acquire(blocking=False):
        return
    try:
        _fetch_due_repositories()
    finally:
        _FETCH_SLOTS.release()


def _fetch_due_repositories() -> None:
    while (project_id := fetching.run_next_fetch()) is not None:
        schedules.end_waits(project_id)
        wake_forges()
        wake_imports()
        fetching.collect_garbage(project_id)


@shared_task(name="orchestrator.dispatch.background_tasks.prune_results")
def prune_results() -> None:
    """Remove some of the data beyond the retention of projects, and of what was deleted long ago.

    Abandoned drafts are deleted first. The next tick continues. Then update the storage use of
    teams with a storage quota.
    """
    delete_abandoned_drafts(utc_now())
    prune_due(utc_now())
    remove_deleted(utc_now())
    measure_stale(utc_now())


@shared_task(name=wakeups.IMPORT_RESULTS)
def import_results() -> None:
    """Execute one step of a waiting import; the next step is sent immediately."""
    if import_some():
        wake_imports()


@shared_task(name="orchestrator.dispatch.background_tasks.remove_ended")
def remove_ended() -> None:
    """Remove some of what ended long ago: sessions, tokens, idempotency keys and imports."""
    _run_each(prune_sessions, prune_tokens, prune_keys, prune_imports)


@shared_task(name=wakeups.NOTIFY_CHANNELS)
def notify_channels() -> None:
    """Deliver what is due at once, such as a test of a channel."""
    _notify_channels()


def _notify_channels() -> None:
    """Record the events for channels, and wake each delivery that is due."""
    events.record_events(utc_now())
    for delivery_id in deliveries.load_due_delivery_ids(utc_now()):
        wake_delivery(delivery_id)


@shared_task(name=wakeups.DELIVER)
def deliver(delivery_id: str) -> None:
    """Attempt one delivery, unless its team uses its share of the threads."""
    with BACKGROUND_SHARES.admit(deliveries.find_delivery_team_id(UUID(delivery_id))) as admitted:
        if admitted:
            deliveries.deliver(UUID(delivery_id), utc_now())


def _sync_forges() -> None:
    """Wake each pull request that is due, and remove old webhooks of forges."""
    for pull_id in pr_sync.load_due_pull_ids():
        wake_pull(pull_id)
    delete_old_webhooks(utc_now())


@shared_task(name=wakeups.SYNC_PULL)
def sync_pull(pull_id: str) -> None:
    """Advance one pull request, unless its team uses its share of the threads.

    In that case a later tick wakes it again.
    """
    with BACKGROUND_SHARES.admit(pr_sync.find_pull_team_id(int(pull_id))) as admitted:
        if admitted:
            pr_sync.sync_pull_request(int(pull_id))


@shared_task(name="orchestrator.dispatch.background_tasks.remove_unused_repositories")
def remove_unused_repositories() -> None:
    """Remove mirrors without a project, and passwords from addresses of older versions."""
    tidying.remove_unused_mirrors()
