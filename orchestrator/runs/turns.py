"""Writes of the engine: leases, turns, and guarded transitions of jobs.

Whoever advances a job holds its turn, a random token. Every write names the token, the state and
the attempt that it expects; when no row matches, somebody else has taken over and `TurnLost` ends
the work without a trace.
"""

import uuid
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import HostState
from orchestrator.runs.models import HostLease, Job, Run, Trial
from orchestrator.runs.states import (
    JOB_ACTIVE,
    JOB_ENDED,
    JOB_TRANSITIONS,
    RUN_ENDED,
    JobState,
    RunState,
    TrialState,
    run_state_of,
)

#: A worker that has not renewed its turn for this long is taken for dead.
TURN_S = 30.0


class TurnLost(Exception):
    """Another worker advances this job now, or it was ended by somebody else."""


def lease_queued_jobs(*, limit: int = 20) -> list[uuid.UUID]:
    """Gives free hosts to the oldest queued jobs and moves these on; returns their ids.

    SKIP LOCKED lets several pumps run side by side; the unique lease row decides in the end.
    """
    leased = []
    with transaction.atomic():
        waiting = (
            Job.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(state=JobState.QUEUED, host__lease=None)
            .exclude(host__state__in=[HostState.UNCONFIRMED, HostState.DISABLED])
            .order_by("created_at", "pk")[:limit]
        )
        for job in waiting:
            if _take_lease(job):
                leased.append(job.pk)
    return leased


def due_jobs() -> list[uuid.UUID]:
    """Active jobs that want to be looked at now and that no living worker holds."""
    now = utc_now()
    free = Q(turn=None) | Q(turn_until__lt=now)
    due = Job.objects.filter(free, state__in=JOB_ACTIVE, look_at__lte=now)
    return list(due.order_by("look_at").values_list("pk", flat=True))


def take_turn(job_id: uuid.UUID) -> Job | None:
    """The job, held by the caller for TURN_S seconds; None if it is held, early or ended."""
    now = utc_now()
    turn = uuid.uuid4()
    free = Q(turn=None) | Q(turn_until__lt=now)
    mine = Job.objects.filter(free, pk=job_id, state__in=JOB_ACTIVE, look_at__lte=now)
    if not mine.update(turn=turn, turn_until=now + timedelta(seconds=TURN_S)):
        return None
    return Job.objects.select_related(
        "run__definition__benchmark__project", "host__credential", "host__profile", "snapshot"
    ).get(pk=job_id)


def change(job: Job, **changes: Any) -> None:
    """Writes `changes` to a job whose turn the caller holds, and renews the turn."""
    changes.setdefault("turn_until", utc_now() + timedelta(seconds=TURN_S))
    held = Job.objects.filter(pk=job.pk, turn=job.turn, state=job.state, attempt=job.attempt)
    if not held.update(**changes):
        raise TurnLost
    for name, value in changes.items():
        setattr(job, name, value)


def give_back(job: Job, *, look_in_s: float) -> None:
    """Ends the turn; the job wants the next one after `look_in_s` seconds.

    A cancellation that came in meanwhile has set an earlier time: it is kept by looking at once.
    """
    cancelled = Run.objects.filter(pk=job.run_id, cancel_requested_at__isnull=False).exists()
    delay = 0.0 if cancelled else look_in_s
    change(job, turn=None, turn_until=None, look_at=utc_now() + timedelta(seconds=delay))


def move(job: Job, state: JobState, **changes: Any) -> None:
    """A transition of the job to `state`, with its run's state brought in line."""
    if state not in JOB_TRANSITIONS[JobState(job.state)]:
        raise TurnLost
    with transaction.atomic():
        change(job, state=state, **changes)
        settle_run(job.run_id)


def end_job(job: Job, state: JobState, message: str) -> None:
    """Ends the job: what was planned is skipped, the lease is released, the run follows."""
    with transaction.atomic():
        Trial.objects.filter(job=job, state=TrialState.PLANNED).update(state=TrialState.SKIPPED)
        HostLease.objects.filter(job=job).delete()
        move(
            job,
            state,
            message=message[:4000],
            phase="",
            current_trial=None,
            turn=None,
            turn_until=None,
            look_at=None,
            ended_at=utc_now(),
        )


def settle_run(run_id: uuid.UUID) -> None:
    """Brings a run's state, message and times in line with its jobs."""
    run = Run.objects.select_for_update().get(pk=run_id)
    if run.state in RUN_ENDED:
        return
    jobs = list(run.jobs.all())
    state = run_state_of(
        [JobState(job.state) for job in jobs], cancelled=run.cancel_requested_at is not None
    )
    run.state = state
    if state != RunState.QUEUED and run.started_at is None:
        run.started_at = utc_now()
    if state in RUN_ENDED:
        run.ended_at = utc_now()
        run.message = "\n".join(job.message for job in jobs if job.message)[:4000]
    run.save(update_fields=["state", "started_at", "ended_at", "message"])


def release_stale_leases() -> int:
    """Leases whose job has ended some other way; returns how many were released."""
    return HostLease.objects.filter(job__state__in=JOB_ENDED).delete()[0]


def _take_lease(job: Job) -> bool:
    try:
        with transaction.atomic():
            HostLease.objects.create(host_id=job.host_id, job=job)
    except IntegrityError:
        return False
    now = utc_now()
    Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
        state=JobState.PREPARING, phase="connecting", started_at=now, look_at=now
    )
    settle_run(job.run_id)
    return True
