"""Backfills: one run for each earlier commit, planned first, started and cancelled together.

Each commit has its own run, so a commit that does not build fails alone. The runs have the lowest
priority, which waiting does not raise: every other run of these hosts goes first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Count, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.quotas import lock_quotas
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.matrix import find_unsupported_reason
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError
from orchestrator.core.ids import hash_value
from orchestrator.runs.cancelling import cancel_run
from orchestrator.runs.earlier_commits import CommitSelection, select_commits, spread_order
from orchestrator.runs.eta import estimate_finish
from orchestrator.runs.models import Backfill, HostRole, Run, Variant
from orchestrator.runs.plans import RunPlan, RunRequest, plan_run
from orchestrator.runs.services import create_planned_run
from orchestrator.runs.states import RUN_ENDED, RunState

_MEASURED = "already measured"
_QUEUED = "already in another backfill"
_FAILED = "failed in an earlier backfill"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest:
    """`again`: also commits that are measured already, or that failed in an earlier backfill.

    The other fields are those of a RunRequest.
    """

    benchmark: str
    selection: CommitSelection
    project: str | None = None
    cases: str = ""
    pairwise: bool = False
    hosts: tuple[str, ...] = ()
    placements: tuple[Mapping[str, str], ...] = ()
    rounds: int | None = None
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedCommit:
    commit: Commit
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """The runs of a backfill in their order, and the selected commits that it leaves out."""

    benchmark: Benchmark
    runs: tuple[RunPlan, ...]
    skipped: tuple[SkippedCommit, ...]
    finish: datetime | None

    @property
    def trial_count(self) -> int:
        return sum(plan.trial_count for plan in self.runs)

    @property
    def machine_s(self) -> float:
        return sum(plan.machine_s for plan in self.runs)

    @property
    def commits(self) -> list[Commit]:
        return [plan.newest for plan in self.runs]

    @property
    def warnings(self) -> list[str]:
        return list(dict.fromkeys(text for plan in self.runs for text in plan.warnings))


def plan_backfill(*, member: Member, request: BackfillRequest) -> BackfillPlan:
    """Plan the runs; InvalidRequestError if no selected commit could be planned."""
    benchmark = benchmarks.load_benchmark(member, request.benchmark, request.project)
    commits = select_commits(benchmark.project, request.selection)
    pending = _find_pending(benchmark, request, commits)
    plans: list[RunPlan] = []
    skipped: list[SkippedCommit] = []
    problem: InvalidRequestError | None = None
    for place in spread_order(len(commits)):
        commit = commits[place]
        reason = pending.get(commit.pk, "")
        if not reason:
            try:
                plans.append(plan_run(member=member, request=_build_request(request, commit)))
                continue
            except InvalidRequestError as error:
                problem, reason = error, str(error)
        skipped.append(SkippedCommit(commit=commit, reason=reason))
    if problem is not None and not plans and not pending:
        raise problem
    if not request.again:
        plans, measured = _leave_out_measured(plans)
        skipped += measured
    return BackfillPlan(
        benchmark=benchmark,
        runs=tuple(plans),
        skipped=tuple(skipped),
        finish=_estimate_finish(plans, member),
    )


def start_backfill(*, member: Member, request: BackfillRequest) -> Backfill:
    """Queue a run for each planned commit; ConflictError if none is left to measure."""
    member.require(Role.MEMBER, to="start a backfill")
    with transaction.atomic():
        # Two equal requests at the same time must not both start.
        lock_quotas(member.team)
        plan = plan_backfill(member=member, request=request)
        if not plan.runs:
            reasons = ", ".join(dict.fromkeys(each.reason for each in plan.skipped))
            raise ConflictError(f"no commit is left to measure: {reasons}")
        backfill = Backfill.objects.create(
            team=member.team,
            benchmark=plan.benchmark,
            created_by=member.actor,
            selection=request.selection.describe(),
            scope=_hash_scope(request),
            skipped=[{"sha": each.commit.sha, "reason": each.reason} for each in plan.skipped],
        )
        for each in plan.runs:
            create_planned_run(
                member=member,
                request=_build_request(request, each.newest),
                plan=each,
                backfill=backfill,
            )
        record_audit(member=member, action="backfill.started", subject=backfill.pk)
    return backfill


def cancel_backfill(*, member: Member, backfill_id: UUID) -> int:
    """Cancel all its runs that have not ended; return their number."""
    member.require(Role.MEMBER, to="cancel a backfill")
    backfill = load_backfill(member, backfill_id)
    with transaction.atomic():
        record_audit(member=member, action="backfill.cancelled", subject=backfill.pk)
        return sum(_cancel(member, run) for run in load_backfill_runs(backfill))


def _cancel(member: Member, run: Run) -> bool:
    if run.state in RUN_ENDED:
        return False
    try:
        with transaction.atomic():
            cancel_run(member=member, run_id=run.pk)
    except ConflictError:
        # It ended in the meantime.
        return False
    return True


def load_backfills(member: Member) -> QuerySet[Backfill]:
    return (
        Backfill.objects.filter(member.sees("benchmark__project", team="team"))
        .select_related("benchmark__project", "created_by")
        .order_by("-created_at")
    )


def load_backfill(member: Member, backfill_id: UUID) -> Backfill:
    backfill = load_backfills(member).filter(pk=backfill_id).first()
    if backfill is None:
        raise NotFoundError.build_for_team("backfill")
    return backfill


def load_backfill_runs(backfill: Backfill) -> list[Run]:
    """Return the runs in the order in which they start."""
    runs = backfill.runs.prefetch_related("variants__commit", "jobs").order_by("created_at", "pk")
    return list(runs)


def count_backfill_runs(backfills: Iterable[Backfill]) -> dict[UUID, dict[str, int]]:
    """Return the number of runs by state, in the order of the states, for each of the backfills."""
    counts: dict[UUID, dict[str, int]] = {each.pk: {} for each in backfills}
    runs = Run.objects.filter(backfill__in=list(counts)).order_by("state")
    for backfill, state, count in runs.values_list("backfill", "state").annotate(n=Count("pk")):
        counts[backfill][state] = count
    return counts


def load_skipped(backfill: Backfill) -> list[SkippedCommit]:
    project = backfill.benchmark.project
    shas = [each["sha"] for each in backfill.skipped]
    known = {commit.sha: commit for commit in project.commits.filter(sha__in=shas)}
    return [
        SkippedCommit(commit=known[each["sha"]], reason=each["reason"])
        for each in backfill.skipped
        if each["sha"] in known
    ]


def explain_run(run: Run) -> str:
    """Return why a run failed or has no usable data: the message of its first job with one."""
    if run.state not in {RunState.FAILED, RunState.NO_DATA}:
        return ""
    return next((job.message for job in run.jobs.all() if job.message), run.message)


def _build_request(request: BackfillRequest, commit: Commit) -> RunRequest:
    return RunRequest(
        benchmark=request.benchmark,
        project=request.project,
        baseline=commit.sha,
        contenders=(),
        cases=request.cases,
        pairwise=request.pairwise,
        hosts=request.hosts,
        placements=request.placements,
        rounds=request.rounds,
        priority="background",
    )


def _hash_scope(request: BackfillRequest) -> str:
    placements = [*({HostRole.TARGET.value: host} for host in request.hosts), *request.placements]
    ordered = sorted((dict(each) for each in placements), key=lambda roles: sorted(roles.items()))
    return hash_value([request.cases.strip(), request.pairwise, ordered])


def _find_pending(
    benchmark: Benchmark, request: BackfillRequest, commits: Sequence[Commit]
) -> dict[int, str]:
    """Map commits that other backfills of the same scope measure, or could not, to the reason."""
    variants = Variant.objects.filter(
        commit__in=commits,
        run__backfill__benchmark=benchmark,
        run__backfill__scope=_hash_scope(request),
    )
    reasons: dict[int, str] = {}
    for commit, state in variants.order_by("run__created_at").values_list(
        "commit_id", "run__state"
    ):
        if state not in RUN_ENDED:
            reasons[commit] = _QUEUED
        elif state == RunState.FAILED and not request.again:
            reasons.setdefault(commit, _FAILED)
    return reasons


def _leave_out_measured(plans: Sequence[RunPlan]) -> tuple[list[RunPlan], list[SkippedCommit]]:
    points = _load_measured(plans)
    left = [plan for plan in plans if not _is_measured(plan, points)]
    skipped = [
        SkippedCommit(commit=plan.newest, reason=_MEASURED) for plan in plans if plan not in left
    ]
    return left, skipped


#: A commit, the version of a definition, a host and a case for which there are counted trials.
_Measured = set[tuple[int, UUID, UUID, str]]


def _load_measured(plans: Sequence[RunPlan]) -> _Measured:
    """Return what has points, and was measured with the definition of one of the plans."""
    versions = {plan.definition.pk for plan in plans if not plan.definition_is_new}
    measured = Commit.objects.filter(
        pk__in=[plan.newest.pk for plan in plans],
        variants__run__definition__in=versions,
        points__trials__gt=0,
        points__series__benchmark__definitions__in=versions,
    ).values_list(
        "pk", "variants__run__definition", "points__series__host", "points__series__case__key"
    )
    return set(measured.distinct())


def _is_measured(plan: RunPlan, measured: _Measured) -> bool:
    """Return whether each supported case has points on one of the hosts of each placement."""
    if plan.definition_is_new:
        return False
    keys = [
        case.key for case in plan.cases if not find_unsupported_reason(plan.spec, case.parameters)
    ]
    return all(
        any(
            all((plan.newest.pk, plan.definition.pk, host.pk, key) in measured for key in keys)
            for host in roles[HostRole.TARGET].candidates
        )
        for roles in plan.placements
    )


def _estimate_finish(plans: Sequence[RunPlan], member: Member) -> datetime | None:
    """Estimate the end: the first run waits for all queued work, and the others follow it."""
    if not plans:
        return None
    first, *others = plans
    whole = replace(first, job_s=first.job_s + sum(plan.job_s for plan in others))
    return estimate_finish(whole, member.team, utc_now())
