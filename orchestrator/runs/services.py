"""Writes of runs: start and cancel."""

import secrets
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken, Role
from orchestrator.accounts.quotas import check_queue, check_storage, lock_quotas
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.services import case_ids_of, store_definition
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError
from orchestrator.core.ids import digest_of
from orchestrator.core.spans import mark_span, span
from orchestrator.runs import selectors
from orchestrator.runs.backlog import sum_queued_seconds
from orchestrator.runs.cancelling import CANCELLED
from orchestrator.runs.idempotency import check_same
from orchestrator.runs.models import (
    HostRole,
    IdempotencyKey,
    Job,
    Placement,
    Run,
    Schedule,
    Trial,
    Trigger,
    Variant,
)
from orchestrator.runs.order import trial_order
from orchestrator.runs.placements import place_job
from orchestrator.runs.plans import RunPlan, RunRequest, plan_run
from orchestrator.runs.states import (
    JOB_ACTIVE,
    JOB_ENDED,
    RUN_ENDED,
    JobState,
    RunState,
    TrialState,
)
from orchestrator.runs.trial_rows import PlannedTrial, insert_planned


def create_run(
    *,
    member: Member,
    request: RunRequest,
    trigger: str = Trigger.WEB,
    schedule: Schedule | None = None,
    seed: int | None = None,
) -> Run:
    """Queue a run with jobs of some minutes each, and all its trials."""
    run, _ = _create_run(member, request, trigger, schedule=schedule, seed=seed)
    return run


def start_run(*, member: Member, request: RunRequest) -> selectors.RunProgress:
    """`create_run` for the API; return the initial progress."""
    return selectors.progress_of_new(*_create_run(member, request, Trigger.API))


def _create_run(
    member: Member,
    request: RunRequest,
    trigger: str,
    *,
    schedule: Schedule | None = None,
    seed: int | None = None,
) -> tuple[Run, dict[Job, int]]:
    """Return the run, and its jobs with the number of trials of each."""
    member.require(Role.MEMBER, to="start a run")
    plan = plan_run(member=member, request=request)
    with span("create run"), transaction.atomic():
        quotas = lock_quotas(member.team)
        check_storage(team=member.team, quotas=quotas)
        queued_s = 0.0 if quotas.queued_s is None else sum_queued_seconds(member.team)
        run = Run.objects.create(
            team=member.team,
            definition=store_definition(plan.definition, by=member.actor),
            trigger=trigger,
            requested_by=member.actor,
            schedule=schedule,
            cases=request.cases.strip(),
            pairwise=request.pairwise,
            rounds=plan.rounds,
            until=plan.until,
            budget_s=plan.budget_s,
            priority=plan.priority,
            seed=secrets.randbits(62) if seed is None else seed,
        )
        mark_span(run=run.pk)
        variants = Variant.objects.bulk_create(
            Variant(run=run, commit=commit, position=place)
            for place, commit in enumerate(plan.commits)
        )
        cases = case_ids_of(benchmark=plan.definition.benchmark, cases=plan.cases)
        jobs = _plan_jobs(run, plan, cases, [variant.pk for variant in variants])
        added_s = sum(job.expected_s for job in jobs)
        check_queue(team=member.team, quotas=quotas, queued_s=queued_s, added_s=added_s)
        record_audit(member=member, action="run.created", subject=run.pk)
    return run, jobs


def start_run_once(
    *,
    member: Member,
    request: RunRequest,
    key: str,
    token: ApiToken | None = None,
    asked: str = "",
) -> tuple[selectors.RunProgress, bool]:
    """`start_run`, but the same key of the same team starts only one run.

    `asked` is the request of the client, from which `request` was computed. Return the progress of
    the run and whether it is new. ConflictError if the key came with another request.
    """
    digest = digest_of([asked or str(request)])
    try:
        with transaction.atomic():
            progress = start_run(member=member, request=request)
            IdempotencyKey.objects.create(
                team=member.team, token=token, key=key, request_digest=digest, run=progress.run
            )
        return progress, True
    except IntegrityError:
        known = IdempotencyKey.objects.select_related("run").filter(team=member.team, key=key)
        found = known.first()
        run_before = _same_request(found, digest) if found else None
        if run_before is None:
            raise
        return selectors.progress_of(selectors.run_alone_for(member, run_before.pk)), False


def run_of_key(*, member: Member, asked: str, key: str) -> Run | None:
    """Return the run of this key, if any; ConflictError for another request."""
    found = IdempotencyKey.objects.select_related("run").filter(team=member.team, key=key).first()
    return _same_request(found, digest_of([asked])) if found else None


def cancel_run(*, member: Member, run_id: UUID) -> Run:
    """Cancel a run: queued jobs end now, active ones at the worker's next poll."""
    member.require(Role.MEMBER, to="cancel a run")
    run = selectors.run_for(member, run_id)
    if run.state in RUN_ENDED:
        raise ConflictError(f"this run has ended already: it is {run.state}")
    now = utc_now()
    with transaction.atomic():
        Run.objects.filter(pk=run.pk, cancel_requested_at=None).update(cancel_requested_at=now)
        queued = list(run.jobs.select_for_update().filter(state=JobState.QUEUED))
        run.jobs.filter(pk__in=[job.pk for job in queued]).update(
            state=JobState.CANCELLED, message="cancelled before it began", ended_at=now
        )
        Trial.objects.filter(job__in=queued, state=TrialState.PLANNED).update(
            state=TrialState.SKIPPED, message=CANCELLED
        )
        run.jobs.filter(state__in=JOB_ACTIVE).update(poll_at=Now())
        record_audit(member=member, action="run.cancelled", subject=run.pk)
        if not run.jobs.exclude(state__in=JOB_ENDED).exists():
            Run.objects.filter(pk=run.pk).update(state=RunState.CANCELLED, ended_at=now)
    run.refresh_from_db()
    return run


def _same_request(found: IdempotencyKey, digest: str) -> Run | None:
    check_same(found, digest)
    return found.run


def _plan_jobs(run: Run, plan: RunPlan, cases: list[int], variants: list[int]) -> dict[Job, int]:
    """Insert all jobs, placements and trials with three statements.

    Return the jobs with the number of trials of each.
    """
    jobs: dict[Job, int] = {}
    placements: list[Placement] = []
    trials: list[PlannedTrial] = []
    for roles in plan.placements:
        for number, part in enumerate(plan.parts):
            job = Job(run=run, host=roles[HostRole.TARGET].host)
            mine = _planned_trials(job.pk, plan, cases, variants, part, run.seed + number)
            job.expected_s = sum(trial.expected_s for trial in mine)
            jobs[job] = len(mine)
            placements += place_job(job, roles)
            trials += mine
    Job.objects.bulk_create(jobs)
    Placement.objects.bulk_create(placements)
    insert_planned(trials)
    return jobs


def _planned_trials(
    job: UUID, plan: RunPlan, cases: list[int], variants: list[int], part: range, seed: int
) -> list[PlannedTrial]:
    slots = trial_order(len(part), len(variants), plan.rounds, seed)
    return [
        PlannedTrial(
            job,
            variants[slot.variant],
            cases[part[slot.case]],
            slot.round,
            place,
            plan.trial_s[part[slot.case]],
        )
        for place, slot in enumerate(slots)
    ]
