"""Writes of runs: asking for one, looking at what it would cost, cancelling it."""

import secrets
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken, Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.loads import expected_trial_s, load_spec_of
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.services import cases_of, commit_of_ref
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.core.ids import digest_of
from orchestrator.fleet import selectors as fleet
from orchestrator.fleet.models import Host, HostState
from orchestrator.runs import selectors
from orchestrator.runs.models import IdempotencyKey, Job, Run, Schedule, Trial, Trigger, Variant
from orchestrator.runs.order import trial_order
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
    """What somebody wants measured; refs are branches, tags or hashes."""

    benchmark: str
    baseline: str
    contenders: tuple[str, ...]
    hosts: tuple[str, ...]
    rounds: int | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A request that can be carried out, and what it would take.

    `trial_s`: how long one trial of each case is expected to take, in matrix order.
    """

    definition: Definition
    spec: Spec
    commits: tuple[Commit, ...]
    hosts: tuple[Host, ...]
    rounds: int
    trial_s: tuple[float, ...]
    trial_count: int
    job_s: float
    warnings: tuple[str, ...]

    @property
    def case_count(self) -> int:
        return len(self.trial_s)


def plan_run(*, member: Member, request: RunRequest) -> RunPlan:
    """What `request` means and costs; NotFoundError or InvalidRequestError where it cannot be."""
    benchmark = benchmarks.benchmark_for(member, request.benchmark, request.project)
    definition = benchmarks.latest_definition(benchmark)
    spec = benchmarks.spec_of(definition)
    rounds = request.rounds if request.rounds is not None else spec.rounds
    if not 1 <= rounds <= 100:
        raise InvalidRequestError("expected 1 to 100 rounds", field="rounds")
    hosts = _usable_hosts(member, request.hosts)
    commits = _commits(benchmark, request)
    times = [expected_trial_s(spec, load_spec_of(spec, case.parameters)) for case in expand(spec)]
    trial_count = len(times) * len(commits) * rounds
    if trial_count > MAX_TRIALS:
        raise InvalidRequestError(
            f"that would be {trial_count} trials a host; at most {MAX_TRIALS} are allowed: "
            "take fewer cases, commits or rounds"
        )
    return RunPlan(
        definition=definition,
        spec=spec,
        commits=commits,
        hosts=hosts,
        rounds=rounds,
        trial_s=tuple(times),
        trial_count=trial_count * len(hosts),
        job_s=sum(times) * len(commits) * rounds,
        warnings=_warnings(rounds, hosts),
    )


def create_run(
    *,
    member: Member,
    request: RunRequest,
    trigger: str = Trigger.WEB,
    schedule: Schedule | None = None,
    seed: int | None = None,
) -> Run:
    """Queues a run with one job a host and all its trials planned."""
    member.require(Role.MEMBER, to="start a run")
    plan = plan_run(member=member, request=request)
    with transaction.atomic():
        run = Run.objects.create(
            team=member.team,
            definition=plan.definition,
            trigger=trigger,
            requested_by=member.user,
            schedule=schedule,
            rounds=plan.rounds,
            seed=secrets.randbits(62) if seed is None else seed,
        )
        variants = Variant.objects.bulk_create(
            Variant(run=run, commit=commit, position=place)
            for place, commit in enumerate(plan.commits)
        )
        cases = cases_of(benchmark=plan.definition.benchmark, spec=plan.spec)
        for host in plan.hosts:
            _plan_job(run, host, plan.trial_s, cases, list(variants))
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
        run.jobs.filter(state=JobState.QUEUED).update(
            state=JobState.CANCELLED, message="cancelled before it began", ended_at=now
        )
        run.jobs.filter(state__in=JOB_ACTIVE).update(look_at=now)
        record_audit(member=member, action="run.cancelled", subject=run.pk)
        if not run.jobs.exclude(state__in=JOB_ENDED).exists():
            Trial.objects.filter(job__run=run, state=TrialState.PLANNED).update(
                state=TrialState.SKIPPED
            )
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


def _usable_hosts(member: Member, names: tuple[str, ...]) -> tuple[Host, ...]:
    if not names:
        raise InvalidRequestError("choose at least one host", field="hosts")
    hosts = fleet.hosts_named(member, list(names))
    for host in hosts:
        if host.state in {HostState.UNCONFIRMED, HostState.DISABLED}:
            raise InvalidRequestError(
                f"{host.name} cannot be used: {host.get_state_display().lower()}", field="hosts"
            )
    return tuple(hosts)


def _commits(benchmark: Benchmark, request: RunRequest) -> tuple[Commit, ...]:
    if not request.contenders:
        raise InvalidRequestError("name at least one commit to compare", field="contenders")
    baseline = _commit(benchmark, request.baseline, "baseline")
    found = [baseline]
    for ref in request.contenders:
        commit = _commit(benchmark, ref, "contenders")
        if commit in found:
            raise InvalidRequestError(
                f"{ref} is the commit {commit.short_sha}, which is in this run already",
                field="contenders",
            )
        found.append(commit)
    return tuple(found)


def _commit(benchmark: Benchmark, ref: str, field: str) -> Commit:
    try:
        return commit_of_ref(project=benchmark.project, ref=ref)
    except InvalidRequestError as error:
        raise InvalidRequestError(str(error), field=field) from error


def _warnings(rounds: int, hosts: tuple[Host, ...]) -> tuple[str, ...]:
    found = []
    if rounds < 5:
        found.append(
            f"with {rounds} rounds no verdict can be given; 5 is the least, 7 or more is better"
        )
    found += [
        f"{host.name} could not be reached the last time: {host.message}"
        for host in hosts
        if host.state == HostState.UNREACHABLE
    ]
    return tuple(found)


def _plan_job(
    run: Run,
    host: Host,
    trial_s: tuple[float, ...],
    cases: list[Case],
    variants: list[Variant],
) -> None:
    job = Job.objects.create(run=run, host=host)
    slots = trial_order(len(cases), len(variants), run.rounds, run.seed)
    Trial.objects.bulk_create(
        Trial(
            job=job,
            variant=variants[slot.variant],
            case=cases[slot.case],
            round=slot.round,
            position=place,
            expected_s=trial_s[slot.case],
        )
        for place, slot in enumerate(slots)
    )
