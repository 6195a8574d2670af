"""Writes of the engine: turns, and guarded transitions of jobs.

Whoever advances a job holds its turn, a random token. Every write names the token, the state and
the attempt that it expects; when no row matches, somebody else has taken over and `TurnLost` ends
the work without a trace. A heartbeat renews the turn while a step goes on (`claim_of`). All times
of turns are those of the database: the clocks of workers may differ.
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
from orchestrator.database.row_claims import claim_of_row
from orchestrator.fleet.models import HELD, Host, HostState
from orchestrator.runs.cancelling import CANCELLED, must_stop
from orchestrator.runs.leasing import release
from orchestrator.runs.models import HostRole, Job, Look, Placement, Trial
from orchestrator.runs.settling import settle_run
from orchestrator.runs.states import JOB_ACTIVE, JOB_TRANSITIONS, JobState, TrialState

#: A worker that has not renewed its turn for this long is taken for dead.
TURN_S = 30.0


class TurnLost(ClaimLost):
    """Another worker advances this job now, or it was ended by somebody else."""


def in_seconds(seconds: float) -> CombinedExpression:
    """So long from now by the clock of the database."""
    return Now() + timedelta(seconds=seconds)


def due_jobs(*, late_by_s: float = 0.0) -> list[uuid.UUID]:
    """Active jobs that wanted a look so long ago and that no living worker holds."""
    since = in_seconds(-late_by_s)
    free = Q(turn=None) | Q(turn_until__lt=since)
    due = Job.objects.filter(free, state__in=JOB_ACTIVE, look_at__lte=since)
    return list(due.order_by("look_at").values_list("pk", flat=True))


def take_turn(job_id: uuid.UUID) -> Job | None:
    """The job, held by the caller for TURN_S seconds; None if it is held, early or ended.

    The step that follows is counted as failed in the same statement: `give_back` and what moves
    the job on take that back. So a worker that dies of a step has counted it.
    """
    turn = uuid.uuid4()
    free = Q(turn=None) | Q(turn_until__lt=Now())
    mine = Job.objects.filter(free, pk=job_id, state__in=JOB_ACTIVE, look_at__lte=Now())
    if not mine.update(turn=turn, turn_until=in_seconds(TURN_S), failures=F("failures") + 1):
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


def claim_of(job: Job, *, since: float) -> Claim:
    """The turn that the caller holds, for a heartbeat; `since`: monotonic, before it was taken."""
    held = Job.objects.filter(pk=job.pk, turn=job.turn)
    return claim_of_row(held, until="turn_until", lasts_s=TURN_S, since=since)


def change(job: Job, **changes: Any) -> None:
    """Writes `changes` to a job whose turn the caller holds, and renews the turn."""
    changes.setdefault("turn_until", in_seconds(TURN_S))
    held = Job.objects.filter(pk=job.pk, turn=job.turn, state=job.state, attempt=job.attempt)
    if not held.update(**changes):
        raise TurnLost
    for name, value in changes.items():
        # What the database calculates is not known here, and nobody reads it.
        if not isinstance(value, Expression):
            setattr(job, name, value)


def begin_another_step(job: Job) -> None:
    """The step before went well, and the next one follows in the same turn: see `take_turn`."""
    change(job, failures=1)


def give_back(job: Job, *, look_in_s: float, failures: int = 0) -> float:
    """Ends the turn; the job wants the next one after so many seconds, which are returned.

    `failures`: how many steps in a row have failed now. A cancellation that came in meanwhile has
    set an earlier time: it is kept by looking at once.
    """
    delay = 0.0 if must_stop(job) else look_in_s
    change(job, turn=None, turn_until=None, look_at=in_seconds(delay), failures=failures)
    return delay


def move(job: Job, state: JobState, **changes: Any) -> None:
    """A transition of the job to `state`, with its run's state brought in line."""
    if state not in JOB_TRANSITIONS[JobState(job.state)]:
        raise TurnLost
    was_active = job.state in JOB_ACTIVE
    with transaction.atomic():
        change(job, state=state, **changes)
        if not (was_active and state in JOB_ACTIVE):
            settle_run(job.run_id)


def end_job(job: Job, state: JobState, message: str) -> None:
    """Ends the job: what was planned is skipped, the lease is released, the run follows."""
    with transaction.atomic():
        left = Trial.objects.filter(job=job, state=TrialState.PLANNED)
        why = CANCELLED if state == JobState.CANCELLED else ""
        left.update(state=TrialState.SKIPPED, message=why)
        release(job)
        move(
            job,
            state,
            message=message[:4000],
            phase="",
            current_trial=None,
            tls=None,
            sealed_secret=None,
            turn=None,
            turn_until=None,
            look_at=None,
            ended_at=Now(),
        )


def mark_unsupported(job: Job, reasons: Mapping[int, str]) -> None:
    """Marks what its hosts cannot measure, by case with the reason, and nothing else.

    Other hosts of an earlier attempt may have lacked something else.
    """
    with transaction.atomic():
        change(job)
        trials = Trial.objects.filter(job=job)
        marked = trials.filter(state=TrialState.UNSUPPORTED).exclude(case__in=list(reasons))
        marked.update(state=TrialState.PLANNED, message="")
        open_ = trials.filter(state__in=[TrialState.PLANNED, TrialState.UNSUPPORTED])
        for reason in set(reasons.values()):
            cases = [case for case, why in reasons.items() if why == reason]
            open_.filter(case__in=cases).update(
                state=TrialState.UNSUPPORTED, message=reason[:20_000]
            )


def give_up_case(job: Job, case: int, reason: str) -> None:
    """Skips what is left of a case."""
    with transaction.atomic():
        change(job)
        left = Trial.objects.filter(job=job, case=case, state=TrialState.PLANNED)
        left.update(state=TrialState.SKIPPED, message=f"given up: {reason}"[:20_000])


def note_looks(job: Job, looks: Collection[Look]) -> None:
    """Keeps what was seen of the job's cases; what that decided or dropped needs no more trials."""
    with transaction.atomic():
        change(job)
        Look.objects.bulk_create(looks)
        for look in looks:
            if not (look.decided or look.dropped):
                continue
            left = Trial.objects.filter(job=job, case=look.case_id, state=TrialState.PLANNED)
            word = "decided" if look.decided else "screened out"
            left.update(
                state=TrialState.NOT_NEEDED,
                message=f"{word} after {look.blocks} blocks: {look.message}"[:20_000],
            )


def skip_the_rest(job: Job, reason: str) -> None:
    """Skips what is left of all cases."""
    with transaction.atomic():
        change(job)
        left = Trial.objects.filter(job=job, state=TrialState.PLANNED)
        left.update(state=TrialState.SKIPPED, message=reason[:20_000])


def put_back(job: Job, message: str, *, wait_s: float, avoid: Collection[uuid.UUID] = ()) -> None:
    """Back to the queue with the next attempt, since a host is to blame and not the job.

    The hosts `avoid` are not taken again for a role that did not ask for them by name.
    """
    with transaction.atomic():
        release(job)
        for placement in Placement.objects.filter(job=job, wanted_host=None):
            _choose_anew(placement, avoid)
        named = Placement.objects.filter(job=job, role=HostRole.TARGET, wanted_host__isnull=False)
        move(
            job,
            JobState.QUEUED,
            **({} if named.exists() else {"host": None}),
            attempt=job.attempt + 1,
            failures=0,
            phase="",
            message=message[:2000],
            current_trial=None,
            tls=None,
            sealed_secret=None,
            turn=None,
            turn_until=None,
            look_at=None,
            not_before=in_seconds(wait_s),
        )


def fail_jobs_of_retired_hosts() -> int:
    """Queued jobs that name a host which will never be leased again; how many were ended."""
    waiting = Job.objects.filter(
        state=JobState.QUEUED, placements__wanted_host__state=HostState.DISABLED
    )
    return sum(_fail_queued(job) for job in waiting.distinct())


def _fail_queued(job: Job) -> bool:
    names = ", ".join(
        place.wanted_host.name
        for place in job.placements.select_related("wanted_host")
        if place.wanted_host and place.wanted_host.state == HostState.DISABLED
    )
    with transaction.atomic():
        ended = Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
            state=JobState.FAILED,
            message=f"{names} was retired before this job began; start the run on another host",
            ended_at=Now(),
        )
        if ended:
            Trial.objects.filter(job=job, state=TrialState.PLANNED).update(state=TrialState.SKIPPED)
            settle_run(job.run_id)
    return bool(ended)


def has_other_hosts(job: Job, host: Host) -> bool:
    """Whether what this host plays in the job could be played by another one."""
    return any(
        _candidates(placement) - {*placement.avoid, host.pk}
        for placement in Placement.objects.filter(job=job, host=host, wanted_host=None)
    )


def _choose_anew(placement: Placement, avoid: Collection[uuid.UUID]) -> None:
    """Frees a flexible placement; where every host of it failed already, all may try again."""
    kept = {*placement.avoid, *avoid}
    placement.avoid = sorted(kept) if _candidates(placement) - kept else []
    placement.host = None
    placement.save(update_fields=["avoid", "host"])


def _candidates(placement: Placement) -> set[uuid.UUID]:
    """The hosts that a flexible placement may take, busy ones included."""
    hosts = placement.candidates().exclude(state__in=HELD)
    return set(hosts.values_list("pk", flat=True))
