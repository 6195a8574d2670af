"""The budget of a run in machine seconds: what is spent, and whether the next round fits.

The cost is that of trials, with their cool-down, and of builds, times the hosts of each job. The
first jobs of a run must not use up the budget. So the five rounds that a verdict needs are reserved
for each other job.
"""

from datetime import timedelta
from uuid import UUID

from django.db.models import Count, F, Q, Sum

from orchestrator.benchmarks.selectors import read_spec
from orchestrator.runs.models import Build, Job, Placement, Run, Trial
from orchestrator.runs.states import JOB_ENDED, TrialState
from orchestrator.stats.paired import FEWEST_BLOCKS

#: The reason of trials that were skipped because of the budget.
SPENT = "budget spent"
ENDED = (TrialState.MEASURED, TrialState.FAILED)


def sum_spent_s(run: Run) -> float:
    """Return the machine seconds of a run's trials and builds so far."""
    hosts = _count_hosts_by_job(run)
    cooldown_s = read_spec(run.definition).cooldown_s
    times = Q(trials__started_at__isnull=False, trials__ended_at__isnull=False)
    ended = Q(trials__state__in=ENDED)
    rows = run.jobs.annotate(
        timed=Count("trials", filter=ended & times),
        took=Sum(F("trials__ended_at") - F("trials__started_at"), filter=ended & times),
        untimed_s=Sum("trials__expected_s", filter=ended & ~times),
    ).values_list("pk", "timed", "took", "untimed_s")
    trials = sum(
        hosts[job] * ((took or timedelta()).total_seconds() + timed * cooldown_s + (untimed or 0.0))
        for job, timed, took, untimed in rows
    )
    builds = Build.objects.filter(job__run=run, cached=False).aggregate(took=Sum("seconds"))
    return float(trials + (builds["took"] or 0.0))


def compute_left_s(run: Run) -> float | None:
    """Return the machine seconds left of a run's budget, at least 0; None without a budget."""
    return None if run.budget_s is None else max(0.0, run.budget_s - sum_spent_s(run))


def allows_round(job: Job, number: int) -> bool:
    """Return whether the budget of the run suffices for this round of the job."""
    left = compute_left_s(job.run)
    if left is None:
        return True
    hosts = _count_hosts_by_job(job.run)
    mine = Trial.objects.filter(job=job, state=TrialState.PLANNED, round=number)
    cost_s = (mine.aggregate(cost=Sum("expected_s"))["cost"] or 0.0) * hosts[job.pk]
    others = (
        Trial.objects.filter(
            job__run=job.run_id, state=TrialState.PLANNED, round__lte=FEWEST_BLOCKS
        )
        .exclude(job=job)
        .exclude(job__state__in=JOB_ENDED)
        .values_list("job")
        .annotate(Sum("expected_s"))
    )
    kept_s = sum(seconds * hosts[other] for other, seconds in others)
    return cost_s + kept_s <= left


def _count_hosts_by_job(run: Run) -> dict[UUID, int]:
    """Return the number of hosts of each job, as in its plan."""
    rows = Placement.objects.filter(job__run=run).values_list("job").annotate(Count("pk"))
    return dict(rows)
