"""A queue of jobs for different reasons."""

from datetime import timedelta

from orchestrator.core.clock import utc_now
from orchestrator.core.errors import UnreachableError
from orchestrator.fleet.services import record_host_error
from orchestrator.runs import leasing
from orchestrator.runs.models import Job
from tests.support.factories import make_local_host, make_run
from tests.support.world import World


def queue_job(world: World, host: str, priority: str = "normal", expected_s: float = 60) -> Job:
    """Return the queued job of a new run on a host, profile or tag."""
    run = make_run(world.alice, world.shas[:2], rounds=1, hosts=(host,), priority=priority)
    run.jobs.update(expected_s=expected_s)
    return run.jobs.get()


def fill_queue(world: World) -> list[Job]:
    """Return four queued jobs in their order.

    Two wait for a job that runs on their host, one for an absent laptop, one for a later time.
    """
    laptop = make_local_host(world.alice, "laptop")
    record_host_error(host=laptop, error=UnreachableError("asleep"))
    running = queue_job(world, "here", expected_s=600)
    assert leasing.lease_queued_jobs() == [running.pk]
    second, first = queue_job(world, "here"), queue_job(world, "here", priority="high")
    away, later = queue_job(world, "laptop"), queue_job(world, "here", priority="low")
    Job.objects.filter(pk=later.pk).update(not_before=utc_now() + timedelta(hours=3))
    return [first, second, away, later]
