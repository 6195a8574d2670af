"""Calibrations: a host measures one commit against itself, to determine its noise.

The package `calibration` evaluates the results.
"""

from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.benchmarks.refs import resolve_ref
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.fleet import selectors as fleet
from orchestrator.fleet.models import Host
from orchestrator.runs.models import GoldenCheck, Run, Trigger
from orchestrator.runs.plans import RunRequest, count_fresh_builds, plan_run
from orchestrator.runs.services import create_run
from orchestrator.runs.states import RUN_ENDED

#: A pair is two rounds.
MIN_PAIRS, MAX_PAIRS = 5, MAX_ROUNDS // 2
DEFAULT_PAIRS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCalibration:
    """What a host measures against itself, and how often.

    The benchmark defaults to that of the host's golden run. The commit defaults to that of the
    golden run for the same benchmark, else to the newest one of the project's default branch.
    """

    benchmark: str = ""
    project: str | None = None
    commit: str = ""
    pairs: int = DEFAULT_PAIRS


def start_calibration(*, member: Member, host_id: UUID, new: NewCalibration) -> Run:
    """Queue 2 · pairs rounds of one commit alone on the host.

    If the definition has build steps, each commit is built several times, and both rounds of a pair
    measure the same build. So the pairs show the noise of trials, and their means that of builds.
    ConflictError if another calibration of the host with this benchmark has not ended.
    """
    member.require(Role.MEMBER, to="calibrate a host")
    host = fleet.load_own_host(member, host_id)
    if not MIN_PAIRS <= new.pairs <= MAX_PAIRS:
        raise InvalidRequestError(
            f"expected {MIN_PAIRS} to {MAX_PAIRS} pairs, got {new.pairs}", field="pairs"
        )
    checks = GoldenCheck.objects.select_related("benchmark__project", "commit")
    golden = checks.filter(host=host, benchmark__deleted_at=None).first()
    benchmark = _find_benchmark(member, new, golden)
    if load_open_calibrations(host).filter(definition__benchmark=benchmark).exists():
        raise ConflictError(
            f"the host {host.name} is already being calibrated with {benchmark.slug}: wait for "
            "it, or cancel that run"
        )
    request = RunRequest(
        benchmark=benchmark.slug,
        project=benchmark.project.slug,
        baseline=_resolve_commit(benchmark, new, golden).sha,
        contenders=(),
        hosts=(host.name,),
        rounds=2 * new.pairs,
    )
    builds = count_fresh_builds(plan_run(member=member, request=request))
    return create_run(
        member=member, request=replace(request, builds=builds), trigger=Trigger.CALIBRATION
    )


def load_open_calibrations(host: Host) -> QuerySet[Run]:
    """Return the host's calibrations that have not ended yet, newest first."""
    runs = Run.objects.filter(trigger=Trigger.CALIBRATION, jobs__placements__wanted_host=host)
    return runs.exclude(state__in=RUN_ENDED).distinct().order_by("-created_at")


def load_ended_calibrations() -> QuerySet[Run]:
    """Return all calibrations that have ended, with the data for their evaluation."""
    return Run.objects.filter(trigger=Trigger.CALIBRATION, state__in=RUN_ENDED).select_related(
        "definition__benchmark"
    )


def _find_benchmark(member: Member, new: NewCalibration, golden: GoldenCheck | None) -> Benchmark:
    if new.benchmark:
        return benchmarks.load_benchmark(member, new.benchmark, new.project)
    if golden is None:
        raise InvalidRequestError(
            "name a benchmark: the host has no golden run that determines it",
            field="benchmark",
        )
    return golden.benchmark


def _resolve_commit(
    benchmark: Benchmark, new: NewCalibration, golden: GoldenCheck | None
) -> Commit:
    if not new.commit and golden is not None and golden.benchmark == benchmark:
        return golden.commit
    ref = new.commit or benchmark.project.default_branch
    try:
        return resolve_ref(project=benchmark.project, ref=ref)
    except InvalidRequestError as error:
        raise InvalidRequestError(str(error), field="commit") from error
