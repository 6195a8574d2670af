"""Cancellation of a run, one of its cases or one of its jobs; existing results are kept.

The request is stored in the trials: the rest of the case or job is skipped, with the user as the
reason. The dispatcher notices that and stops the hosts. A skipped trial is never resumed, since
only planned trials are measured and stored.
"""

from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, NotFoundError
from orchestrator.runs import selectors
from orchestrator.runs.models import Job, Run, Trial
from orchestrator.runs.run_state import sync_run_state
from orchestrator.runs.states import (
    JOB_ACTIVE,
    JOB_ENDED,
    RUN_ENDED,
    JobState,
    RunState,
    TrialState,
    describe_run_state,
)
from orchestrator.runs.step_rounds import list_step_rounds
from orchestrator.runs.version_keys import NEXT_REVISION

#: The reason of a trial that a user cancelled begins with this.
CANCELLED = "cancelled"
_WITH_JOB = f"{CANCELLED} with its job"


def cancel_run(*, member: Member, run_id: UUID) -> Run:
    """Cancel a run: queued jobs end now, active ones at the worker's next poll."""
    member.require(Role.MEMBER, to="cancel a run")
    run = selectors.load_run(member, run_id)
    cancel_loaded_run(member=member, run=run)
    return run


def cancel_loaded_run(*, member: Member, run: Run, reason: str = "") -> None:
    """Cancel a run that the caller has loaded and may cancel; `reason` becomes its message."""
    if run.state in RUN_ENDED:
        raise ConflictError(f"this run has already ended: {describe_run_state(run.state)}")
    now = utc_now()
    with transaction.atomic():
        # Jobs are locked before their run, as by a worker that ends a job.
        jobs = list(run.jobs.select_for_update().order_by("pk"))
        if all(job.state in JOB_ENDED for job in jobs):
            raise ConflictError("this run has already ended")
        Run.objects.filter(pk=run.pk, cancel_requested_at=None).update(
            cancel_requested_at=now, message=reason
        )
        queued = [job.pk for job in jobs if job.state == JobState.QUEUED]
        run.jobs.filter(pk__in=queued).update(
            state=JobState.CANCELLED,
            message="cancelled before it began",
            ended_at=now,
            revision=NEXT_REVISION,
        )
        Trial.objects.filter(job__in=queued, state=TrialState.PLANNED).update(
            state=TrialState.SKIPPED, message=CANCELLED
        )
        run.jobs.filter(state__in=JOB_ACTIVE).update(poll_at=Now())
        record_audit(member=member, action="run.cancelled", subject=run.pk)
        if not run.jobs.filter(state__in=JOB_ACTIVE).exists():
            Run.objects.filter(pk=run.pk).update(state=RunState.CANCELLED, ended_at=now)
    run.refresh_from_db()


def cancel_case(*, member: Member, run_id: UUID, case_id: int) -> Run:
    """Cancel one case of a run on all its hosts; a running trial ends at the next poll."""
    member.require(Role.MEMBER, to="cancel a case")
    run = _load_unended_run(member, run_id)
    with transaction.atomic():
        mine = Trial.objects.filter(job__run=run, case=case_id).values("job")
        jobs = list(run.jobs.select_for_update().filter(pk__in=mine).order_by("pk"))
        if not jobs:
            raise NotFoundError("there is no such case in this run; reload the page")
        if not _skip_planned(jobs, f"{CANCELLED} by {_name_member(member)}", case=case_id):
            raise ConflictError("this case has no trials left to measure; reload the page")
        _end_emptied(jobs)
        record_audit(member=member, action="case.cancelled", subject=f"{run.pk} case {case_id}")
    run.refresh_from_db()
    return run


def cancel_job(*, member: Member, run_id: UUID, job_id: UUID) -> Run:
    """Cancel one job of a run: a queued one ends now, an active one at the worker's next poll."""
    member.require(Role.MEMBER, to="cancel a job")
    run = _load_unended_run(member, run_id)
    with transaction.atomic():
        job = run.jobs.select_for_update().filter(pk=job_id).first()
        if job is None:
            raise NotFoundError("there is no such job in this run; reload the page")
        if job.state in JOB_ENDED:
            raise ConflictError(f"this job has already ended: it is {job.state}")
        if not _skip_planned([job], f"{_WITH_JOB} by {_name_member(member)}"):
            raise ConflictError("this job has no trials left to measure, so it is about to end")
        if job.state in JOB_ACTIVE:
            Job.objects.filter(pk=job.pk).update(poll_at=Now())
        _end_emptied([job])
        record_audit(member=member, action="job.cancelled", subject=job.pk)
    run.refresh_from_db()
    return run


def is_cancelled(job: Job) -> bool:
    """Return whether the job or its run, as read with it, was cancelled: the job ends now."""
    of_run = job.run.cancel_requested_at is not None
    return of_run or _filter_cancelled(job).filter(message__startswith=_WITH_JOB).exists()


def must_stop(job: Job) -> bool:
    """Return whether the current trial was cancelled, so that the host must stop immediately."""
    at_once = Q(message__startswith=_WITH_JOB) | Q(pk=job.current_trial)
    run = Run.objects.filter(pk=job.run_id, cancel_requested_at__isnull=False)
    return run.exists() or _filter_cancelled(job).filter(at_once).exists()


def load_cancelled_trial_ids(job: Job) -> list[str]:
    """Return the ids of the cancelled trials in the current step of the job."""
    trials = _filter_cancelled(job).filter(round__in=list_step_rounds(job)).order_by("position")
    return [str(pk) for pk in trials.values_list("pk", flat=True)]


def load_cancel_reasons(job: Job) -> dict[int, str]:
    """Map the keys of cases with cancelled trials to the reason."""
    return dict(_filter_cancelled(job).order_by("position").values_list("case", "message"))


def _filter_cancelled(job: Job) -> QuerySet[Trial]:
    return Trial.objects.filter(job=job.pk, state=TrialState.SKIPPED, message__startswith=CANCELLED)


def _load_unended_run(member: Member, run_id: UUID) -> Run:
    run = selectors.load_run(member, run_id)
    if run.state in RUN_ENDED:
        raise ConflictError(f"this run has already ended: {describe_run_state(run.state)}")
    return run


def _name_member(member: Member) -> str:
    return member.user.get_username()


def _skip_planned(jobs: list[Job], message: str, **only: int) -> bool:
    """Skip the planned trials of these locked jobs; return whether there were any."""
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(revision=NEXT_REVISION)
    left = Trial.objects.filter(job__in=jobs, state=TrialState.PLANNED, **only)
    return bool(left.update(state=TrialState.SKIPPED, message=message))


def _end_emptied(jobs: list[Job]) -> None:
    """End queued jobs without planned trials; poll active jobs whose current trial was
    cancelled."""
    now = utc_now()
    for job in jobs:
        if job.state == JobState.QUEUED and not _has_planned_trials(job):
            Job.objects.filter(pk=job.pk).update(
                state=JobState.CANCELLED, message="cancelled before it began", ended_at=now
            )
            sync_run_state(job.run_id)
        elif job.state in JOB_ACTIVE and job.current_trial and must_stop(job):
            Job.objects.filter(pk=job.pk).update(poll_at=Now())


def _has_planned_trials(job: Job) -> bool:
    return Trial.objects.filter(job=job, state=TrialState.PLANNED).exists()
