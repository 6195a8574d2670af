"""The limit of the wait of a run's jobs in the queue, for example while their hosts are away."""

from django.db.models.functions import Now

from cli.pitwall.units import format_duration
from orchestrator.runs.claims import fail_queued_job
from orchestrator.runs.models import Job, Run
from orchestrator.runs.states import JobState
from orchestrator.runs.wait_reasons import describe_wait

DAY_S = 86_400.0
#: A weekend, and the days around it.
DEFAULT_WAIT_LIMIT_S = 7 * DAY_S
LEAST_WAIT_LIMIT_S = 60.0
MOST_WAIT_LIMIT_S = 90 * DAY_S
#: The most jobs that one tick ends.
JOBS_PER_TICK = 500


def get_wait_limit_s(run: Run) -> float:
    return float(round((run.waits_until - run.created_at).total_seconds()))


def fail_overdue_jobs() -> int:
    """Fail queued jobs whose run does not wait any longer; return their number.

    Results that such a job already has are kept.
    """
    overdue = Job.objects.filter(state=JobState.QUEUED, run__waits_until__lte=Now())
    jobs = overdue.select_related("run").prefetch_related("placements__wanted_host")
    return sum(fail_queued_job(job, _explain_end(job)) for job in jobs[:JOBS_PER_TICK])


def _explain_end(job: Job) -> str:
    limit = format_duration(get_wait_limit_s(job.run))
    return (
        f"the wait limit of the run, {limit}, has passed: {describe_wait(job)}. Start the run "
        "again when its hosts are there, or with a longer limit."
    )
