"""Wake-ups of the workers, so that work starts before its next tick."""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from orchestrator.database.task_messages import send_task, send_task_later
from orchestrator.runs.models import Job
from orchestrator.runs.states import JOB_ACTIVE

PUMP, ADVANCE, CHECK_HOST, PROBE_HOST = (
    f"orchestrator.dispatch.tasks.{name}"
    for name in ("pump", "advance", "check_host", "probe_host")
)
PROCESS_RESULTS, START_DUE_WORK, IMPORT_RESULTS, NOTIFY_CHANNELS, DELIVER, SYNC_PULL = (
    f"orchestrator.dispatch.background_tasks.{name}"
    for name in (
        "process_results", "start_due_work", "import_results", "notify_channels", "deliver",
        "sync_pull",
    )
)  # fmt: skip


def wake_engine() -> None:
    """Send a tick after the transaction is committed. Without a broker the next tick does it."""
    _send(PUMP)


def wake_job(job_id: UUID) -> None:
    """Poll a job now; a message that is lost is sent again by the next tick."""
    _send(ADVANCE, job_id)


def wake_job_later(job_id: UUID, *, in_s: float) -> None:
    """Poll a job after `in_s` seconds."""
    transaction.on_commit(partial(send_task_later, ADVANCE, str(job_id), in_s=in_s))


def wake_jobs(run_id: UUID) -> None:
    """Send a poll for each active job of a run that is due, for example after a cancellation."""
    jobs = Job.objects.filter(run=run_id, state__in=JOB_ACTIVE, poll_at__lte=Now())
    for job in list(jobs.values_list("pk", flat=True)):
        wake_job(job)


def wake_check(host_id: UUID) -> None:
    """Have a worker execute the requested checks of a host."""
    _send(CHECK_HOST, host_id)


def wake_probe(host_id: UUID) -> None:
    """Have a worker probe an absent host."""
    _send(PROBE_HOST, host_id)


def wake_imports() -> None:
    """Have a worker begin with a queued import, or continue with one."""
    _send(IMPORT_RESULTS)


def wake_after_job() -> None:
    """Send the tick that uses the results of a job that left its hosts."""
    _send(PROCESS_RESULTS)


def wake_forges() -> None:
    """Send the tick that processes new webhooks of a forge."""
    _send(START_DUE_WORK)


def wake_pull(pull_id: int) -> None:
    """Have a worker advance a pull request that is due."""
    _send(SYNC_PULL, pull_id)


def wake_channels() -> None:
    """Send the tick that delivers what is due, such as a test."""
    _send(NOTIFY_CHANNELS)


def wake_delivery(delivery_id: UUID) -> None:
    """Have a worker attempt a delivery that is due."""
    _send(DELIVER, delivery_id)


def _send(task: str, *words: object) -> None:
    transaction.on_commit(partial(send_task, task, *map(str, words)))
