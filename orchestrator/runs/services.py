"""Writes of runs: asking for one, looking at what it would cost, cancelling it."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken, Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.loads import expected_trial_s
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.services import cases_of, commit_of_ref
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.core.ids import digest_of
from orchestrator.fleet.models import HELD, HostState
from orchestrator.runs import selectors
from orchestrator.runs.models import (
    ALONE,
    HostRole,
    IdempotencyKey,
    Job,
    Placement,
    Priority,
    Run,
    Schedule,
    Trial,
    Trigger,
    Variant,
)
from orchestrator.runs.order import parts_of, trial_order
from orchestrator.runs.placements import Roles, place_job, roles_asked
from orchestrator.runs.states import (
    JOB_ACTIVE,
    JOB_ENDED,
    RUN_ENDED,
    JobState,
    RunState,
    TrialState,
)

MAX_TRIALS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What somebody wants measured; refs are branches, tags or hashes.

    Without a baseline it is the first parent of the first contender: it is measured along with it,
    in the same blocks. `hosts` are placements of one host that plays every role; `placements` name
    a host for each role (see runs/placements.py).
    """

    benchmark: str
    contenders: tuple[str, ...]
    baseline: str = ""
    hosts: tuple[str, ...] = ()
    placements: tuple[Mapping[str, str], ...] = ()
    rounds: int | None = None
    project: str | None = None
    priority: str = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A request that can be carried out, and what it would take.

    `trial_s`: how long one trial of each case is expected to take, in matrix order. `parts`: the
    cases (their places in that order) of each job of a placement. `job_s`: what one placement is
    busy for in all.
    """

    definition: Definition
    spec: Spec
    commits: tuple[Commit, ...]
    placements: tuple[Roles, ...]
    rounds: int
    priority: int
    trial_s: tuple[float, ...]
    parts: tuple[range, ...]
    trial_count: int
    job_s: float
    warnings: tuple[str, ...]

    @property
    def case_count(self) -> int:
        return len(self.trial_s)

    @property
    def job_count(self) -> int:
        return len(self.parts) * len(self.placements)

    @property
    def machine_s(self) -> float:
        """Of all hosts together."""
        return self.job_s * sum(len(roles) for roles in self.placements)


def plan_run(*, member: Member, request: RunRequest, alone: bool = False) -> RunPlan:
    """What `request` means and costs; NotFoundError or InvalidRequestError where it cannot be.

    `alone`: the baseline may come without contenders.
    """
    benchmark = benchmarks.benchmark_for(member, request.benchmark, request.project)
    definition = benchmarks.latest_definition(benchmark)
    spec = benchmarks.spec_of(definition)
    rounds = request.rounds if request.rounds is not None else spec.rounds
    if not 1 <= rounds <= 100:
        raise InvalidRequestError("expected 1 to 100 rounds", field="rounds")
    placements = roles_asked(member, request.hosts, request.placements, spec.roles)
    commits = _commits(benchmark, request, alone=alone)
    times = [expected_trial_s(spec, case.parameters) for case in expand(spec)]
    trial_count = len(times) * len(commits) * rounds
    if trial_count > MAX_TRIALS:
        raise InvalidRequestError(
            f"that would be {trial_count} trials a host; at most {MAX_TRIALS} are allowed: "
            "take fewer cases, commits or rounds"
        )
    case_s = [each * len(commits) * rounds for each in times]
    return RunPlan(
        definition=definition,
        spec=spec,
        commits=commits,
        placements=placements,
        rounds=rounds,
        priority=_priority(request.priority),
        trial_s=tuple(times),
        parts=tuple(parts_of(case_s)),
        trial_count=trial_count * len(placements),
        job_s=sum(case_s),
        warnings=_warnings(rounds, placements, alone=alone),
    )


def create_run(
    *,
    member: Member,
    request: RunRequest,
    trigger: str = Trigger.WEB,
    schedule: Schedule | None = None,
    seed: int | None = None,
) -> Run:
    """Queues a run, its jobs of some minutes each, and all its trials."""
    member.require(Role.MEMBER, to="start a run")
    plan = plan_run(member=member, request=request, alone=trigger in ALONE)
    with transaction.atomic():
        run = Run.objects.create(
            team=member.team,
            definition=plan.definition,
            trigger=trigger,
            requested_by=member.user,
            schedule=schedule,
            rounds=plan.rounds,
            priority=plan.priority,
            seed=secrets.randbits(62) if seed is None else seed,
        )
        variants = Variant.objects.bulk_create(
            Variant(run=run, commit=commit, position=place)
            for place, commit in enumerate(plan.commits)
        )
        cases = cases_of(benchmark=plan.definition.benchmark, spec=plan.spec)
        _plan_jobs(run, plan, cases, list(variants))
        record_audit(member=member, action="run.created", subject=run.pk)
    return run


def create_run_once(
    *, member: Member, request: RunRequest, key: str, token: ApiToken | None = None
) -> tuple[Run, bool]:
    """`create_run`, but the same key of the same team makes one run only.

    Returns the run and whether it is new. ConflictError where the key came with another request.
    """
    digest = digest_of([str(request)])
    try:
        with transaction.atomic():
            run = create_run(member=member, request=request, trigger=Trigger.API)
            IdempotencyKey.objects.create(
                team=member.team, token=token, key=key, request_digest=digest, run=run
            )
        return run, True
    except IntegrityError:
        known = IdempotencyKey.objects.select_related("run").filter(team=member.team, key=key)
        found = known.first()
        if found is None:
            raise
        return _same_request(found, digest), False


def run_of_key(*, member: Member, request: RunRequest, key: str) -> Run | None:
    """The run that this key made before, if any; ConflictError for another request."""
    found = IdempotencyKey.objects.select_related("run").filter(team=member.team, key=key).first()
    return _same_request(found, digest_of([str(request)])) if found else None


def cancel_run(*, member: Member, run_id: UUID) -> Run:
    """Asks for the end of a run: queued jobs end now, active ones at the worker's next look."""
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
            state=TrialState.SKIPPED
        )
        run.jobs.filter(state__in=JOB_ACTIVE).update(look_at=now)
        record_audit(member=member, action="run.cancelled", subject=run.pk)
        if not run.jobs.exclude(state__in=JOB_ENDED).exists():
            Run.objects.filter(pk=run.pk).update(state=RunState.CANCELLED, ended_at=now)
    run.refresh_from_db()
    return run


def _same_request(found: IdempotencyKey, digest: str) -> Run:
    if found.request_digest != digest:
        raise ConflictError(
            f"the idempotency key {found.key!r} came with another request before; "
            "use a new key for a new request"
        )
    return found.run


def _priority(name: str) -> int:
    try:
        return Priority[name.upper()].value
    except KeyError as error:
        known = ", ".join(each.name.lower() for each in Priority)
        raise InvalidRequestError(
            f"expected one of {known}, got {name!r}", field="priority"
        ) from error


def _commits(benchmark: Benchmark, request: RunRequest, *, alone: bool) -> tuple[Commit, ...]:
    if not request.contenders and not (alone and request.baseline):
        raise InvalidRequestError("name at least one commit to compare", field="contenders")
    contenders = [_commit(benchmark, ref, "contenders") for ref in request.contenders]
    if request.baseline:
        found = [_commit(benchmark, request.baseline, "baseline")]
    else:
        found = [_parent(benchmark, contenders[0])]
    for ref, commit in zip(request.contenders, contenders, strict=True):
        if commit in found:
            raise InvalidRequestError(
                f"{ref} is the commit {commit.short_sha}, which is in this run already",
                field="contenders",
            )
        found.append(commit)
    return tuple(found)


def _parent(benchmark: Benchmark, commit: Commit) -> Commit:
    if not commit.parents:
        raise InvalidRequestError(
            f"{commit.short_sha} is the first commit and has no parent; name a baseline",
            field="baseline",
        )
    return _commit(benchmark, commit.parents[0], "baseline")


def _commit(benchmark: Benchmark, ref: str, field: str) -> Commit:
    try:
        return commit_of_ref(project=benchmark.project, ref=ref)
    except InvalidRequestError as error:
        raise InvalidRequestError(str(error), field=field) from error


def _warnings(rounds: int, placements: tuple[Roles, ...], *, alone: bool) -> tuple[str, ...]:
    found = []
    if rounds < 5 and not alone:
        found.append(
            f"with {rounds} rounds no verdict can be given; 5 is the least, 7 or more is better"
        )
    named = [one.host for roles in placements for one in roles.values() if one.host is not None]
    for host in dict.fromkeys(named):
        if host.state == HostState.UNREACHABLE:
            found.append(f"{host.name} could not be reached the last time: {host.message}")
        elif host.state in HELD:
            state = host.get_state_display().lower()
            found.append(f"{host.name} is {state} ({host.message}): the run waits for its release")
    return tuple(found)


def _plan_jobs(run: Run, plan: RunPlan, cases: list[Case], variants: list[Variant]) -> None:
    """The rows of all jobs, placements and trials, with three statements in all."""
    jobs: list[Job] = []
    placements: list[Placement] = []
    trials: list[Trial] = []
    for roles in plan.placements:
        for number, part in enumerate(plan.parts):
            job = Job(run=run, host=roles[HostRole.TARGET].host)
            mine = _planned_trials(job, plan, cases, variants, part, run.seed + number)
            job.expected_s = sum(trial.expected_s for trial in mine)
            jobs.append(job)
            placements += place_job(job, roles)
            trials += mine
    Job.objects.bulk_create(jobs)
    Placement.objects.bulk_create(placements)
    Trial.objects.bulk_create(trials)


def _planned_trials(
    job: Job, plan: RunPlan, cases: list[Case], variants: list[Variant], part: range, seed: int
) -> list[Trial]:
    slots = trial_order(len(part), len(variants), plan.rounds, seed)
    return [
        Trial(
            job=job,
            variant=variants[slot.variant],
            case=cases[part[slot.case]],
            round=slot.round,
            position=place,
            expected_s=plan.trial_s[part[slot.case]],
        )
        for place, slot in enumerate(slots)
    ]
