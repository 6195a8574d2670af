"""The Celery tasks that contact hosts: they only trigger work. Each may run twice or late.

Other tasks are in `background_tasks.py`, whose worker may be busy for long.
"""

from uuid import UUID

from celery import shared_task

from orchestrator.dispatch import checkup, engine, probes
from orchestrator.dispatch.wakeups import (
    ADVANCE,
    CHECK_HOST,
    PROBE_HOST,
    PUMP,
    wake_after_job,
    wake_check,
    wake_engine,
    wake_job,
    wake_job_later,
    wake_probe,
)
from orchestrator.fleet.check_requests import load_due_host_ids
from orchestrator.runs import claims, leasing
from orchestrator.runs.absent_hosts import load_due_probe_ids

#: A job that is late by this time was forgotten by its worker, or its message was lost.
OVERDUE_S = 2.0
#: A poll that is due within this time is scheduled by the previous one; others by the pump, which
#: is up to 17 s late. It is less than the time after which the broker sends a message again.
SOON_S = 90.0


@shared_task(name=PUMP)
def pump() -> None:
    """Lease free hosts to queued jobs, wake every job that is due, and probe absent hosts."""
    leasing.lease_queued_jobs(wake_job)
    for job_id in claims.load_due_job_ids(late_by_s=OVERDUE_S):
        wake_job(job_id)
    for host_id in load_due_host_ids():
        wake_check(host_id)
    for host_id in load_due_probe_ids():
        wake_probe(host_id)


@shared_task(name=ADVANCE)
def advance(job_id: str) -> None:
    """Advance a job as far as possible without waiting, and schedule the next poll."""
    result = engine.advance(UUID(job_id))
    if result.left_hosts:
        wake_engine()
        wake_after_job()
    elif result.wait_s is not None and result.wait_s < SOON_S:
        wake_job_later(UUID(job_id), in_s=result.wait_s)


@shared_task(name=CHECK_HOST)
def check_host(host_id: str) -> None:
    """Execute the requested checks of one host."""
    checkup.run_checks(UUID(host_id))


@shared_task(name=PROBE_HOST)
def probe_host(host_id: str) -> None:
    """Probe one absent host; if it answers again, its jobs start."""
    if probes.probe_host(UUID(host_id)):
        wake_engine()
