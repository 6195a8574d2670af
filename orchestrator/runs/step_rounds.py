"""Which rounds of a job its hosts measure in one step, with one plan and one start of the agent."""

from django.db.models import QuerySet, Sum

from orchestrator.runs.models import Job, Trial
from orchestrator.runs.models.choices import Until

#: Short rounds are combined up to this expected time. Between two steps the engine may end cases,
#: lengthen warm-ups and pause the job, so a step should not take long.
LONGEST_S = 30.0


def list_step_rounds(job: Job) -> range:
    """Return the rounds of the current step: `job.round`, and the following ones while they are
    short.

    The first round is alone, because later plans use its results. With a budget or interim
    analyses each round is alone, because it decides whether the next one is measured. So is each
    round of a run with several builds. The result does not change while the job is measured.
    """
    last, left_s = job.round, LONGEST_S
    if _may_combine(job):
        rounds = job.trials.filter(round__gte=job.round).order_by("round").values_list("round")
        for number, expected_s in rounds.annotate(Sum("expected_s")):
            left_s -= expected_s
            if left_s < 0:
                break
            last = number
    return range(job.round, last + 1)


def filter_step_trials(job: Job) -> QuerySet[Trial]:
    """Return the trials of the current step, in any state."""
    return job.trials.filter(round__in=list_step_rounds(job))


def _may_combine(job: Job) -> bool:
    run = job.run
    is_fixed = run.until == Until.ROUNDS and run.budget_s is None
    return job.round > 1 and run.builds == 1 and is_fixed
