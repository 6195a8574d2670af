"""Wake-ups of the engine, so that work starts before its next tick."""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from orchestrator.database.task_messages import send_task
from orchestrator.runs.models import Job
from orchestrator.runs.states import JOB_ACTIVE


def wake_engine() -> None:
    """Send a tick after the transaction is committed. Without a broker the next tick does it."""
    transaction.on_commit(_send)


def wake_jobs(run_id: UUID) -> None:
    """Send a poll for each active job of a run that is due, for example after a cancellation."""
    jobs = Job.objects.filter(run=run_id, state__in=JOB_ACTIVE, poll_at__lte=Now())
    for job in list(jobs.values_list("pk", flat=True)):
        transaction.on_commit(partial(_send, "advance", str(job)))


def wake_check(host_id: UUID) -> None:
    """Have a worker execute the requested checks of a host."""
    transaction.on_commit(partial(_send, "check_host", str(host_id)))


def wake_imports() -> None:
    """Have a worker begin with a queued import."""
    transaction.on_commit(partial(_send, "import_results"))


def wake_after_job() -> None:
    """Send the tick that uses the results of a job that left its hosts."""
    _send("process_results")


def wake_forges() -> None:
    """Send the tick that processes new webhooks of a forge."""
    transaction.on_commit(partial(_send, "start_due_work"))


def wake_channels() -> None:
    """Send the tick that delivers what is due, such as a test."""
    transaction.on_commit(partial(_send, "notify_channels"))


def _send(task: str = "pump", *words: str) -> None:
    send_task(f"orchestrator.dispatch.tasks.{task}", *words)
