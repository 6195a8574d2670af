"""What is kept permanently: pinned data, and data that a published result depends on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.benchmarks.refs import open_repository, resolve_ref
from orchestrator.calibration.models import GoldenOutcome
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError
from orchestrator.reports.models import SavedReport
from orchestrator.reports.report_spec import parse
from orchestrator.results.models import CHANGE_REAL, Baseline, ChangePoint, Pin, Point
from orchestrator.runs.models import GoldenCheck, Run, Schedule, Variant
from orchestrator.runs.selectors import load_run
from orchestrator.stats.drift import FIRST_VALUES, REMEMBERED

#: Number of latest commits that a report of all commits contains.
REPORTED_COMMITS = 50


K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedData:
    """Kept ids with reasons.

    All measurements of `commits` are kept, all data of `runs`, and only the points of `points`.
    """

    commits: Mapping[int, tuple[str, ...]]
    runs: Mapping[UUID, tuple[str, ...]]
    points: Mapping[int, tuple[str, ...]]


def load_pins(project: Project) -> QuerySet[Pin]:
    return project.pins.select_related("commit", "run__definition__benchmark", "pinned_by")


def load_pin(project: Project, pin_id: int) -> Pin:
    pin = load_pins(project).filter(pk=pin_id).first()
    if pin is None:
        raise NotFoundError(f"{project.name} has no pin with that number; reload the page")
    return pin


def find_pin(run: Run) -> Pin | None:
    """Return the pin of the run itself. The project's page lists other reasons to keep it."""
    return Pin.objects.select_related("pinned_by").filter(run=run).first()


def pin_commit(*, member: Member, project: Project, ref: str, reason: str) -> Pin:
    """Keep the measurements of the commit that a hash, a branch or a tag names now."""
    member.require(Role.MEMBER, to="pin a commit")
    commit = resolve_ref(project=project, ref=ref)
    return _pin(member, Pin(project=project, commit=commit), reason)


def pin_run(*, member: Member, run_id: UUID, reason: str, project: Project | None = None) -> Pin:
    """Keep all data of the run. Raise NotFoundError if it is not a run of `project`."""
    member.require(Role.MEMBER, to="pin a run")
    run = load_run(member, run_id)
    measured = run.definition.benchmark.project
    if project not in (None, measured):
        raise NotFoundError(f"that run measured {measured.name}, not {project}")
    return _pin(member, Pin(project=measured, run=run), reason)


@transaction.atomic
def unpin(*, member: Member, project: Project, pin_id: int) -> None:
    """Apply the project's retention again: data that is past it is deleted soon."""
    member.require(Role.MEMBER, to="remove a pin")
    pin = load_pin(project, pin_id)
    record_audit(member=member, action="pin.removed", subject=pin)
    pin.delete()


def load_kept(project: Project) -> RetainedData:
    """Return all data that the retention of a project must keep, and why."""
    commits: dict[int, list[str]] = defaultdict(list)
    runs: dict[UUID, list[str]] = defaultdict(list)
    points: dict[int, list[str]] = defaultdict(list)
    for pin in load_pins(project):
        if pin.commit_id is not None:
            commits[pin.commit_id].append(f"pinned: {pin.reason}")
        if pin.run is not None:
            runs[pin.run.pk].append(f"pinned: {pin.reason}")
            _add_reason(points, _list_run_commits([pin.run.pk]), f"pinned run: {pin.reason}")
    for report in SavedReport.objects.filter(benchmark__project=project):
        _add_reason(commits, _list_report_commits(report), f"report {report.slug}")
    for schedule in Schedule.objects.filter(benchmark__project=project):
        _add_reason(
            commits, _list_baseline_commits(schedule), f"baseline of the schedule {schedule.name}"
        )
    for check in GoldenCheck.objects.filter(benchmark__project=project).select_related("host"):
        points[check.commit_id].append(f"golden run of {check.host.name}")
        _add_reason(runs, _list_golden_runs(check), f"golden run of {check.host.name}")
    _add_change_reasons(project, commits, runs)
    return RetainedData(
        commits=_freeze_kept(commits), runs=_freeze_kept(runs), points=_freeze_kept(points)
    )


@transaction.atomic
def _pin(member: Member, pin: Pin, reason: str) -> Pin:
    pin.reason = reason.strip()[:200]
    pin.pinned_by = member.user
    if not pin.reason:
        raise InvalidRequestError("enter the reason for the pin", field="reason")
    try:
        with transaction.atomic():
            pin.save(force_insert=True)
    except IntegrityError as error:
        raise ConflictError(f"{pin} is already pinned; reload the page") from error
    record_audit(member=member, action="pin.added", subject=f"{pin}: {pin.reason}")
    return pin


def _list_report_commits(report: SavedReport) -> Iterable[int]:
    """Return the commits that a saved report shows."""
    name = _read_commit_name(report)
    measured = _select_measured(report.benchmark)
    if name in ("newest", "all"):
        return measured[: 1 if name == "newest" else REPORTED_COMMITS]
    project = report.benchmark.project
    try:
        sha = open_repository(project).resolve(name)
    except InvalidRequestError:
        # The name is ambiguous now: keep all of them.
        return measured
    return project.commits.filter(sha=sha).values_list("pk", flat=True)


def _read_commit_name(report: SavedReport) -> str:
    try:
        return parse(report.source).commit
    except InvalidRequestError:
        return "all"


def _select_measured(benchmark: Benchmark) -> QuerySet[Commit, int]:
    points = Point.objects.filter(commit=OuterRef("pk"), series__benchmark=benchmark)
    commits = Commit.objects.filter(Exists(points), project=benchmark.project)
    return commits.order_by("-committed_at").values_list("pk", flat=True)


def _list_baseline_commits(schedule: Schedule) -> Iterable[int]:
    """Return the commits that its latest run was compared with."""
    newest = schedule.runs.order_by("-created_at").first()
    first = Variant.objects.filter(run=newest, position=0) if newest else Variant.objects.none()
    return first.values_list("commit_id", flat=True)


def _list_golden_runs(check: GoldenCheck) -> Iterable[UUID]:
    """Return the golden runs that later ones are compared with: the newest, and the first."""
    outcomes = GoldenOutcome.objects.filter(host=check.host, is_reference=True).order_by("-at")
    newest = list(outcomes.values_list("run_id", "epoch")[:REMEMBERED])
    of_epoch = outcomes.filter(
        epoch=newest[0][1] if newest else 0, run__variants__commit=check.commit_id
    )
    first = of_epoch.order_by("at").values_list("run_id", flat=True)[:FIRST_VALUES]
    return {*first, *(run for run, _ in newest)}


def _add_change_reasons(
    project: Project, commits: dict[int, list[str]], runs: dict[UUID, list[str]]
) -> None:
    """Keep both ends of confirmed changes, their confirmation runs, and the starts of histories."""
    confirmed = ChangePoint.objects.filter(
        series__benchmark__project=project, state__in=CHANGE_REAL
    )
    rows = confirmed.values_list("commit_id", "before_id", "culprit_id", "run_id").distinct()
    for *ends, run in rows:
        for commit in {end for end in ends if end is not None}:
            if "end of a confirmed change" not in commits[commit]:
                commits[commit].append("end of a confirmed change")
        if run is not None and run not in runs:
            runs[run].append("confirmed a change")
    baselines = Baseline.objects.filter(commit__project=project)
    _add_reason(
        commits, baselines.values_list("commit_id", flat=True).distinct(), "a history starts here"
    )


def _list_run_commits(runs: Iterable[UUID]) -> Iterable[int]:
    return Variant.objects.filter(run__in=runs).values_list("commit_id", flat=True)


def _add_reason(reasons: dict[K, list[str]], keys: Iterable[K], why: str) -> None:
    for key in keys:
        reasons[key].append(why)


def _freeze_kept(kept: Mapping[K, list[str]]) -> dict[K, tuple[str, ...]]:
    return {key: tuple(reasons) for key, reasons in kept.items()}
