"""Creation of runs: their jobs, placements and trials in balanced random blocks.

A run can have thousands of trials, so they are written by COPY. Model instances would take ten
times as long as the rest of a request to start a run.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken, Role
from orchestrator.accounts.quotas import check_queue, check_storage, lock_quotas
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.services import show_cases, store_case_rows, store_definition
from orchestrator.core.clock import utc_now
from orchestrator.core.ids import hash_value, new_ids
from orchestrator.core.spans import mark_span, span
from orchestrator.runs import selectors
from orchestrator.runs.idempotency import check_same
from orchestrator.runs.models import (
    Backfill,
    HostRole,
    IdempotencyKey,
    Job,
    Placement,
    Run,
    Schedule,
    Trigger,
    Variant,
)
from orchestrator.runs.placements import place_job
from orchestrator.runs.plans import RunPlan, RunRequest, check_wait_limit, plan_run
from orchestrator.runs.selectors import sum_queued_seconds
from orchestrator.runs.states import (
    TrialState,
)
from orchestrator.runs.trial_order import group_cases, order_trials

_COPY = (
    "COPY runs_trial (id, job_id, variant_id, case_id, round, position, expected_s, "
    "state, validity, reasons, message, provenance) FROM STDIN"
)
#: The initial values of the other columns, equal to the model's defaults.
_REST = f"{TrialState.PLANNED}\t\t[]\t\t{{}}"


class PlannedTrial(NamedTuple):
    """A new row; `round` from 1, `position` in the job's order of execution."""

    job: UUID
    variant: int
    case: int
    round: int
    position: int
    expected_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """What a run comes from. `trigger` is one of `Trigger`."""

    trigger: str
    schedule: Schedule | None = None
    backfill: Backfill | None = None


def create_run(
    *,
    member: Member,
    request: RunRequest,
    trigger: str = Trigger.WEB,
    schedule: Schedule | None = None,
    seed: int | None = None,
) -> Run:
    """Queue a run with jobs of some minutes each, and all its trials."""
    origin = RunOrigin(trigger=trigger, schedule=schedule)
    run, _ = _create_run(member, request, origin, seed=seed)
    return run


def start_run(*, member: Member, request: RunRequest) -> selectors.RunProgress:
    """`create_run` for the API; return the initial progress."""
    return selectors.build_progress(*_create_run(member, request, RunOrigin(trigger=Trigger.API)))


def _create_run(
    member: Member, request: RunRequest, origin: RunOrigin, *, seed: int | None = None
) -> tuple[Run, dict[Job, int]]:
    """Return the run, and its jobs with the number of trials of each."""
    member.require(Role.MEMBER, to="start a run")
    plan = plan_run(member=member, request=request)
    return _store_run(member, request, plan, origin, seed=seed)


def create_planned_run(
    *, member: Member, request: RunRequest, plan: RunPlan, backfill: Backfill
) -> Run:
    """Queue a run of a backfill, which has been planned already."""
    member.require(Role.MEMBER, to="start a run")
    origin = RunOrigin(trigger=Trigger.BACKFILL, backfill=backfill)
    run, _ = _store_run(member, request, plan, origin)
    return run


def _store_run(
    member: Member,
    request: RunRequest,
    plan: RunPlan,
    origin: RunOrigin,
    *,
    seed: int | None = None,
) -> tuple[Run, dict[Job, int]]:
    with span("create run"), transaction.atomic():
        quotas = lock_quotas(member.team)
        check_storage(team=member.team, quotas=quotas)
        queued_s = 0.0 if quotas.queued_s is None else sum_queued_seconds(member.team)
        run = _insert_run(member, request, plan, origin, seed)
        mark_span(run=run.pk)
        jobs = _insert_jobs(run, plan)
        added_s = sum(job.expected_s for job in jobs)
        check_queue(team=member.team, quotas=quotas, queued_s=queued_s, added_s=added_s)
        record_audit(member=member, action="run.created", subject=run.pk)
    return run, jobs


def _insert_run(
    member: Member, request: RunRequest, plan: RunPlan, origin: RunOrigin, seed: int | None
) -> Run:
    return Run.objects.create(
        team=member.team,
        definition=store_definition(plan.definition, by=member.actor),
        trigger=origin.trigger,
        requested_by=member.actor,
        schedule=origin.schedule,
        backfill=origin.backfill,
        cases=request.cases.strip(),
        pairwise=request.pairwise,
        rounds=plan.rounds,
        builds=plan.builds,
        until=plan.until,
        places=plan.places,
        budget_s=plan.budget_s,
        wait_for_quiet=request.wait_for_quiet,
        waits_until=utc_now() + timedelta(seconds=check_wait_limit(request.wait_limit_s)),
        repositories=[pin._asdict() for pin in plan.pins],
        priority=plan.priority,
        seed=secrets.randbits(62) if seed is None else seed,
    )


def start_run_once(
    *,
    member: Member,
    request: RunRequest,
    key: str,
    token: ApiToken | None = None,
    client_request: str = "",
) -> tuple[selectors.RunProgress, bool]:
    """`start_run`, but the same key of the same team starts only one run.

    `client_request` is the request of the client; `request` was computed from it. Return the
    progress of the run and whether it is new. ConflictError if the key came with another request.
    """
    digest = hash_value([client_request or str(request)])
    try:
        with transaction.atomic():
            progress = start_run(member=member, request=request)
            IdempotencyKey.objects.create(
                team=member.team, token=token, key=key, request_digest=digest, run=progress.run
            )
        return progress, True
    except IntegrityError:
        known = IdempotencyKey.objects.select_related("run").filter(team=member.team, key=key)
        record = known.first()
        run_before = _check_same_request(record, digest) if record else None
        if run_before is None:
            raise
        return selectors.load_progress(selectors.run_alone_for(member, run_before.pk)), False


def find_run_by_key(*, member: Member, client_request: str, key: str) -> Run | None:
    """Return the run of this key, if any; ConflictError for another request."""
    record = IdempotencyKey.objects.select_related("run").filter(team=member.team, key=key).first()
    return _check_same_request(record, hash_value([client_request])) if record else None


def _check_same_request(record: IdempotencyKey, digest: str) -> Run | None:
    check_same(record, digest)
    return record.run


def _insert_jobs(run: Run, plan: RunPlan) -> dict[Job, int]:
    """Insert variants, missing cases, jobs, placements and trials, each kind with one statement.

    Return the jobs with the number of trials of each.
    """
    variants = Variant.objects.bulk_create(
        Variant(run=run, commit=commit, position=place) for place, commit in enumerate(plan.commits)
    )
    cases = store_case_rows(benchmark=plan.definition.benchmark, cases=plan.cases)
    show_cases(cases)
    return _plan_jobs(run, plan, cases, [variant.pk for variant in variants])


def _plan_jobs(run: Run, plan: RunPlan, cases: list[int], variants: list[int]) -> dict[Job, int]:
    jobs: dict[Job, int] = {}
    placements: list[Placement] = []
    trials: list[PlannedTrial] = []
    for roles in plan.placements:
        for number, part in enumerate(plan.parts):
            job = Job(run=run, host=roles[HostRole.TARGET].host)
            mine = _plan_trials(job.pk, plan, cases, variants, part, run.seed + number)
            job.expected_s = sum(trial.expected_s for trial in mine) + plan.prepare_s[number]
            jobs[job] = len(mine)
            placements += place_job(job, roles)
            trials += mine
    Job.objects.bulk_create(jobs)
    Placement.objects.bulk_create(placements)
    insert_planned(trials)
    return jobs


def _plan_trials(
    job: UUID, plan: RunPlan, cases: list[int], variants: list[int], part: Sequence[int], seed: int
) -> list[PlannedTrial]:
    contests = group_cases(plan.spec, [plan.cases[at] for at in part])
    slots = order_trials(len(part), len(variants), plan.rounds, seed, contests=contests)
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


def insert_planned(trials: Sequence[PlannedTrial]) -> None:
    """Insert all trials, with new ids in their order, in the caller's transaction."""
    ids = new_ids(len(trials))
    lines = "".join(
        f"{pk}\t{job.hex}\t{variant}\t{case}\t{number}\t{position}\t{expected_s!r}\t{_REST}\n"
        for pk, (job, variant, case, number, position, expected_s) in zip(ids, trials, strict=True)
    )
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(lines)
