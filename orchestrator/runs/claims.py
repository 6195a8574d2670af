"""Writes of the dispatcher: claims, and guarded transitions of jobs.

The worker that advances a job holds its claim, a random token. Every write names the token, the
state and the attempt that it expects. If no row matches, another worker has taken over, and
`JobClaimLost` ends the work without a trace. A heartbeat renews the claim during a step
(`build_claim`). All times of claims are those of the database, since clocks of workers may differ.
"""

import uuid
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Prefetch, Q
from django.db.models.expressions import CombinedExpression, Expression
from django.db.models.functions import Now

from orchestrator.core.heartbeat import Claim, ClaimLost
from orchestrator.database.row_claims import build_row_claim
from orchestrator.fleet.models import HELD, Host, HostState
from orchestrator.runs.cancelling import CANCELLED, must_stop
from orchestrator.runs.leasing import release
from orchestrator.runs.models import HostRole, InterimAnalysis, Job, Placement, Trial
from orchestrator.runs.quiet_wait import PAUSED_PHASE
from orchestrator.runs.run_state import sync_run_state
from orchestrator.runs.states import JOB_ACTIVE, JOB_TRANSITIONS, JobState, TrialState
from orchestrator.runs.version_keys import NEXT_REVISION

#: A worker that has not renewed its claim for this long is considered dead.
CLAIM_S = 30.0


class JobClaimLost(ClaimLost):
    """Another worker advances this job now, or the job has ended."""


def build_deadline(seconds: float) -> CombinedExpression:
    """Return the time in this many seconds by the clock of the database."""
    return Now() + timedelta(seconds=seconds)


def load_due_job_ids(*, late_by_s: float = 0.0) -> list[uuid.UUID]:
    """Return active jobs whose poll is overdue by `late_by_s` and that no live worker has
    claimed."""
    since = build_deadline(-late_by_s)
    free = Q(claim=None) | Q(claimed_until__lt=since)
    due = Job.objects.filter(free, state__in=JOB_ACTIVE, poll_at__lte=since)
    return list(due.order_by("poll_at").values_list("pk", flat=True))


def claim_job(job_id: uuid.UUID) -> Job | None:
    """Claim the job for CLAIM_S seconds; None if it is claimed, not yet due or ended.

    The same statement counts the next step as failed; `release_claim` and the next step reset the
    count. So a step that kills its worker is counted as failed.
    """
    claim = uuid.uuid4()
    free = Q(claim=None) | Q(claimed_until__lt=Now())
    mine = Job.objects.filter(free, pk=job_id, state__in=JOB_ACTIVE, poll_at__lte=Now())
    if not mine.update(
        claim=claim, claimed_until=build_deadline(CLAIM_S), failures=F("failures") + 1
    ):
        return None
    return (
        Job.objects.select_related(
            "run__definition__benchmark__project", "host__credential", "host__profile", "snapshot"
        )
        .prefetch_related(
            Prefetch("placements", Placement.objects.select_related("host__credential"))
        )
        .get(pk=job_id)
    )


def build_claim(job: Job, *, since: float) -> Claim:
    """Return the caller's claim for a heartbeat; `since`: monotonic time before it was taken."""
    held = Job.objects.filter(pk=job.pk, claim=job.claim)
    return build_row_claim(held, until="claimed_until", lasts_s=CLAIM_S, since=since)


def update_job(job: Job, **changes: Any) -> None:
    """Write `changes` and a new revision to a job claimed by the caller, and renew the claim."""
    changes.setdefault("claimed_until", build_deadline(CLAIM_S))
    changes["revision"] = NEXT_REVISION
    held = Job.objects.filter(pk=job.pk, claim=job.claim, state=job.state, attempt=job.attempt)
    if not held.update(**changes):
        raise JobClaimLost
    for name, value in changes.items():
        # The result of a database expression is unknown here, and nothing reads it.
        if not isinstance(value, Expression):
            setattr(job, name, value)


def begin_next_step(job: Job) -> None:
    """Record that the step succeeded; the next one follows under the same claim (`claim_job`)."""
    update_job(job, failures=1)


def release_claim(job: Job, *, poll_in_s: float, failures: int = 0) -> float:
    """End the claim and schedule the next poll; return the seconds until then.

    `failures`: the number of consecutive failed steps. If the current trial was cancelled in the
    meantime, the job is polled immediately.
    """
    delay = 0.0 if must_stop(job) else poll_in_s
    update_job(
        job, claim=None, claimed_until=None, poll_at=build_deadline(delay), failures=failures
    )
    return delay


def change_job_state(job: Job, state: JobState, **changes: Any) -> None:
    """Move the job to `state`, and update the state of its run."""
    if state not in JOB_TRANSITIONS[JobState(job.state)]:
        raise JobClaimLost
    was_active = job.state in JOB_ACTIVE
    with transaction.atomic():
        update_job(job, state=state, **changes)
        if not (was_active and state in JOB_ACTIVE):
            sync_run_state(job.run_id)


def end_job(job: Job, state: JobState, message: str) -> None:
    """End the job: skip planned trials, release the leases and update the run."""
    with transaction.atomic():
        change_job_state(
            job,
            state,
            message=message[:4000],
            phase="",
            current_trial=None,
            tls=None,
            sealed_secret=None,
            claim=None,
            claimed_until=None,
            poll_at=None,
            ended_at=Now(),
        )
        left = Trial.objects.filter(job=job, state=TrialState.PLANNED)
        why = CANCELLED if state == JobState.CANCELLED else ""
        left.update(state=TrialState.SKIPPED, message=why)
        release(job)


def mark_unsupported(job: Job, reasons: Mapping[int, str]) -> None:
    """Mark the cases that its hosts cannot measure, with the reasons; unmark all other cases.

    Hosts of an earlier attempt may have had other limits.
    """
    with transaction.atomic():
        update_job(job)
        trials = Trial.objects.filter(job=job)
        marked = trials.filter(state=TrialState.UNSUPPORTED).exclude(case__in=list(reasons))
        marked.update(state=TrialState.PLANNED, message="")
        open_ = trials.filter(state__in=[TrialState.PLANNED, TrialState.UNSUPPORTED])
        for reason in set(reasons.values()):
            cases = [case for case, why in reasons.items() if why == reason]
            open_.filter(case__in=cases).update(
                state=TrialState.UNSUPPORTED, message=reason[:20_000]
            )


def skip_case(job: Job, case: int, reason: str) -> None:
    """Skip the remaining trials of a case."""
    with transaction.atomic():
        update_job(job)
        left = Trial.objects.filter(job=job, case=case, state=TrialState.PLANNED)
        left.update(state=TrialState.SKIPPED, message=f"skipped after failures: {reason}"[:20_000])


def store_analyses(job: Job, analyses: Collection[InterimAnalysis]) -> None:
    """Store the analyses of the job's cases; decided and futile cases need no more trials."""
    with transaction.atomic():
        update_job(job)
        InterimAnalysis.objects.bulk_create(analyses)
        for analysis in analyses:
            if not (analysis.decided or analysis.futile):
                continue
            left = Trial.objects.filter(job=job, case=analysis.case_id, state=TrialState.PLANNED)
            outcome = "decided" if analysis.decided else "stopped early"
            left.update(
                state=TrialState.NOT_NEEDED,
                message=f"{outcome} after {analysis.blocks} blocks: {analysis.message}"[:20_000],
            )


def skip_remaining(job: Job, reason: str) -> None:
    """Skip the remaining trials of all cases."""
    with transaction.atomic():
        update_job(job)
        left = Trial.objects.filter(job=job, state=TrialState.PLANNED)
        left.update(state=TrialState.SKIPPED, message=reason[:20_000])


def requeue_job(
    job: Job, message: str, *, wait_s: float, avoid: Collection[uuid.UUID] = ()
) -> None:
    """Return a job to the queue for the next attempt after a failure of a host.

    The hosts in `avoid` are not used again for a role that did not request them by name.
    """
    _return_to_queue(job, message, wait_s, avoid, attempt=job.attempt + 1, phase="")


def wait_for_absent_host(job: Job, message: str) -> None:
    """Return the job to the queue because a host is absent; this is no lost attempt."""
    _return_to_queue(job, message, 0.0, (), phase="")


def interrupt_job(job: Job, message: str) -> None:
    """Return the job to the queue because its round was stopped from outside, or lost its host.

    This is no lost attempt: neither the job nor a host has failed.
    """
    _return_to_queue(job, message, 0.0, (), interruptions=job.interruptions + 1, phase="")


def wait_for_busy_host(job: Job, message: str, *, wait_s: float) -> None:
    """Return the job to the queue because others use a host. This is no lost attempt.

    A step that followers have begun gets another name, since an agent starts each step once.
    """
    interruptions = job.interruptions + int(job.followers_started)
    _return_to_queue(job, message, wait_s, (), interruptions=interruptions, phase="")


def pause_job(job: Job, message: str, *, wait_s: float) -> None:
    """Return the job to the queue for a time, between two rounds. This is no lost attempt."""
    _return_to_queue(job, message, wait_s, (), pauses=job.pauses + 1, phase=PAUSED_PHASE)


def _return_to_queue(
    job: Job, message: str, wait_s: float, avoid: Collection[uuid.UUID], **changes: Any
) -> None:
    with transaction.atomic():
        release(job)
        for placement in Placement.objects.filter(job=job, wanted_host=None):
            _reset_placement(placement, avoid)
        named = Placement.objects.filter(job=job, role=HostRole.TARGET, wanted_host__isnull=False)
        change_job_state(
            job,
            JobState.QUEUED,
            **({} if named.exists() else {"host": None}),
            failures=0,
            message=message[:2000],
            current_trial=None,
            tls=None,
            sealed_secret=None,
            claim=None,
            claimed_until=None,
            poll_at=None,
            not_before=build_deadline(wait_s),
            **changes,
        )


def fail_jobs_on_retired_hosts() -> int:
    """Fail queued jobs that name a retired host, which is never leased; return their number."""
    waiting = Job.objects.filter(
        state=JobState.QUEUED, placements__wanted_host__state=HostState.RETIRED
    )
    return sum(_fail_on_retired(job) for job in waiting.distinct())


def _fail_on_retired(job: Job) -> bool:
    names = ", ".join(
        place.wanted_host.name
        for place in job.placements.select_related("wanted_host")
        if place.wanted_host and place.wanted_host.state == HostState.RETIRED
    )
    return fail_queued_job(
        job, f"{names} was retired before this job began; start the run on another host"
    )


def fail_queued_job(job: Job, message: str) -> bool:
    """Fail a queued job; return False if it is not queued any more."""
    with transaction.atomic():
        ended = Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
            state=JobState.FAILED,
            message=message[:4000],
            ended_at=Now(),
            revision=NEXT_REVISION,
        )
        if ended:
            Trial.objects.filter(job=job, state=TrialState.PLANNED).update(state=TrialState.SKIPPED)
            sync_run_state(job.run_id)
    return bool(ended)


def has_other_hosts(job: Job, host: Host) -> bool:
    """Return whether another host could play a role that this host has in the job."""
    return any(
        _find_candidates(placement) - {*placement.avoid, host.pk}
        for placement in Placement.objects.filter(job=job, host=host, wanted_host=None)
    )


def _reset_placement(placement: Placement, avoid: Collection[uuid.UUID]) -> None:
    """Free a flexible placement; if all its hosts have failed, all are allowed again."""
    kept = {*placement.avoid, *avoid}
    placement.avoid = sorted(kept) if _find_candidates(placement) - kept else []
    placement.host = None
    placement.save(update_fields=["avoid", "host"])


def _find_candidates(placement: Placement) -> set[uuid.UUID]:
    """Return the hosts that a flexible placement may use, including busy ones."""
    hosts = placement.candidates().exclude(state__in=HELD)
    return set(hosts.values_list("pk", flat=True))
