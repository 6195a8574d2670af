"""Deletion of projects and benchmarks, which can be restored for some days.

A deleted object vanishes from lists, choices, schedules and queues immediately. Its rows remain
until `remove_deleted` removes them, after DAYS_TO_RESTORE.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from django.db import transaction
from django.db.models import Q, QuerySet

from orchestrator.accounts.members import Member, build_system_member
from orchestrator.accounts.models import ApiToken, Role
from orchestrator.accounts.services import record_audit, record_system_audit
from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.models import Benchmark, Case, Fetch, Project
from orchestrator.benchmarks.selectors import load_benchmark, load_project
from orchestrator.benchmarks.sharing import load_share_links
from orchestrator.core.clock import utc_now
from orchestrator.core.dependents import DependentCount
from orchestrator.core.errors import ConflictError, NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.reports.models import SavedReport
from orchestrator.results.models import ChangePoint, ChangeState, Point, Series
from orchestrator.retention.removal_steps import (
    remove_benchmark,
    remove_case,
    remove_project,
    remove_run,
)
from orchestrator.runs.cancelling import cancel_loaded_run
from orchestrator.runs.models import GoldenCheck, Run, Schedule
from orchestrator.runs.states import RUN_ENDED

logger = logging.getLogger(__name__)

DAYS_TO_RESTORE = 14
#: A restore that began in time must not meet the removal.
LATER = timedelta(hours=1)
#: Names per kind that are shown; the rest is counted.
MOST_NAMES = 5
#: Points are not counted further.
MOST_COUNTED = 100_000
_WHY_CANCELLED = "cancelled, because the benchmark was deleted"
#: Steps of the removal per task; the next one continues.
STEPS = 20


def list_project_dependents(member: Member, project: Project) -> tuple[DependentCount, ...]:
    """Return what is deleted with a project from `load_project`, without kinds that it lacks."""
    names = list(project.benchmarks.values_list("slug", flat=True))
    tokens = ApiToken.objects.filter(project=project, revoked_at=None).order_by("name")
    links = load_share_links(member).filter(project=project)
    return _select_existing(
        _name_rows("Benchmarks", names),
        *_list_dependents(list(project.benchmarks.values_list("pk", flat=True))),
        _name_rows("API tokens for this project only", list(tokens.values_list("name", flat=True))),
        DependentCount(title="Shared links", count=links.count()),
    )


def list_benchmark_dependents(benchmark: Benchmark) -> tuple[DependentCount, ...]:
    """Return what is deleted with a benchmark from `load_benchmark`, as for a project."""
    return _select_existing(*_list_dependents([benchmark.pk]))


@transaction.atomic
def delete_project(*, member: Member, slug: str) -> Project:
    """Delete a project with its benchmarks, and cancel its runs."""
    member.require(Role.MAINTAINER, to="delete a project")
    project = load_project(member, slug)
    benchmarks = list(project.benchmarks.values_list("pk", flat=True))
    project.deleted_at, project.deleted_by = utc_now(), member.actor
    project.save(update_fields=["deleted_at", "deleted_by"])
    Benchmark.objects.filter(pk__in=benchmarks).update(
        deleted_at=project.deleted_at, deleted_by=member.actor
    )
    _cancel_runs(member, benchmarks)
    Fetch.objects.filter(project=project).update(next_at=None)
    record_audit(member=member, action="project.deleted", subject=project)
    return project


@transaction.atomic
def delete_benchmark(*, member: Member, project: str, slug: str) -> Benchmark:
    """Delete a benchmark with its results, and cancel its runs."""
    member.require(Role.MAINTAINER, to="delete a benchmark")
    benchmark = load_benchmark(member, slug, project)
    benchmark.deleted_at, benchmark.deleted_by = utc_now(), member.actor
    benchmark.save(update_fields=["deleted_at", "deleted_by"])
    _cancel_runs(member, [benchmark.pk])
    record_audit(member=member, action="benchmark.deleted", subject=benchmark)
    return benchmark


def load_deleted_projects(member: Member) -> QuerySet[Project]:
    """Return the deleted projects of the team that can be restored, the latest first."""
    rows = Project.with_deleted.filter(team=member.team, deleted_at__gt=_compute_cutoff(utc_now()))
    return rows.select_related("deleted_by").order_by("-deleted_at", "pk")


def load_deleted_benchmarks(member: Member) -> QuerySet[Benchmark]:
    """Return the same for benchmarks that were not deleted with their project."""
    rows = Benchmark.with_deleted.filter(
        project__team=member.team,
        project__deleted_at=None,
        deleted_at__gt=_compute_cutoff(utc_now()),
    )
    return rows.select_related("project", "deleted_by").order_by("-deleted_at", "pk")


def compute_removal_time(deleted: Project | Benchmark) -> datetime:
    """Return until when a deleted object can be restored."""
    assert deleted.deleted_at is not None, "only for deleted objects"
    return deleted.deleted_at + timedelta(days=DAYS_TO_RESTORE)


@transaction.atomic
def restore_project(*, member: Member, project_id: int) -> Project:
    """Restore a project with the benchmarks that were deleted with it, and request a fetch."""
    member.require(Role.MAINTAINER, to="restore a project")
    rows = load_deleted_projects(member).select_for_update(of=("self",))
    project = rows.filter(pk=project_id).first()
    if project is None:
        raise NotFoundError.build_for_team("deleted project")
    if Project.objects.filter(team=member.team, slug=project.slug).exists():
        raise ConflictError(
            f"the team has another project {project.slug} now: delete that one first"
        )
    together = Benchmark.with_deleted.filter(project=project, deleted_at=project.deleted_at)
    together.update(deleted_at=None, deleted_by=None)
    project.deleted_at = project.deleted_by = None
    project.save(update_fields=["deleted_at", "deleted_by"])
    request_fetch(project)
    record_audit(member=member, action="project.restored", subject=project)
    return project


@transaction.atomic
def restore_benchmark(*, member: Member, benchmark_id: int) -> Benchmark:
    """Restore a benchmark; a draft is saved by that."""
    member.require(Role.MAINTAINER, to="restore a benchmark")
    rows = load_deleted_benchmarks(member).select_for_update(of=("self",))
    benchmark = rows.filter(pk=benchmark_id).first()
    if benchmark is None:
        raise NotFoundError.build_for_team("deleted benchmark")
    if Benchmark.objects.filter(project=benchmark.project, slug=benchmark.slug).exists():
        raise ConflictError(
            f"{benchmark.project.name} has another benchmark {benchmark.slug} now: delete that one "
            "first"
        )
    benchmark.deleted_at = benchmark.deleted_by = None
    # Somebody wants a restored draft: as a draft, it would soon be deleted again.
    benchmark.is_draft = False
    benchmark.save(update_fields=["deleted_at", "deleted_by", "is_draft"])
    record_audit(member=member, action="benchmark.restored", subject=benchmark)
    return benchmark


def remove_deleted(now: datetime) -> None:
    """Cancel runs that were created during a deletion, and remove what cannot be restored any more.

    The tasks call it. An interrupted removal simply continues.
    """
    deleted = Benchmark.with_deleted.exclude(deleted_at=None).select_related("project__team")
    for benchmark in deleted:
        _cancel_runs(build_system_member(benchmark.project.team), [benchmark.pk])
    due = Q(deleted_at__lte=_compute_cutoff(now) - LATER)
    for benchmark in deleted.filter(due).order_by("deleted_at", "pk"):
        _run_steps(benchmark, _iterate_benchmark_steps(benchmark))
    for project in Project.with_deleted.filter(due).order_by("deleted_at", "pk"):
        _run_steps(project, _iterate_project_steps(project))


def _compute_cutoff(now: datetime) -> datetime:
    return now - timedelta(days=DAYS_TO_RESTORE)


def _cancel_runs(member: Member, benchmarks: Iterable[int]) -> None:
    """Cancel unfinished runs. Changes whose confirmation runs they are stay open: a restoration
    confirms them."""
    ChangePoint.objects.filter(
        series__benchmark__in=benchmarks, state=ChangeState.CONFIRMING, run__isnull=False
    ).exclude(run__state__in=RUN_ENDED).update(state=ChangeState.OPEN, run=None)
    runs = Run.objects.filter(definition__benchmark__in=benchmarks).exclude(state__in=RUN_ENDED)
    for run in runs.order_by("pk"):
        with contextlib.suppress(ConflictError):
            # It may end in the meantime.
            cancel_loaded_run(member=member, run=run, reason=_WHY_CANCELLED)


def _list_dependents(benchmarks: list[int]) -> list[DependentCount]:
    runs = Run.objects.filter(definition__benchmark__in=benchmarks)
    points = Point.objects.filter(series__benchmark__in=benchmarks)[: MOST_COUNTED + 1].count()
    alerts = Benchmark.with_deleted.filter(pk__in=benchmarks, alerts__state="open")
    schedules = Schedule.objects.filter(benchmark__in=benchmarks).order_by("name")
    reports = SavedReport.objects.filter(benchmark__in=benchmarks).order_by("title")
    golden = GoldenCheck.objects.filter(benchmark__in=benchmarks).order_by("host__name")
    calibrated = Host.objects.filter(calibrations__benchmark__in=benchmarks).order_by("name")
    return [
        DependentCount(title="Runs", count=runs.count()),
        DependentCount(title="Unfinished runs", count=runs.exclude(state__in=RUN_ENDED).count()),
        DependentCount(
            title="Histories", count=Series.objects.filter(benchmark__in=benchmarks).count()
        ),
        DependentCount(
            title="Points of histories",
            count=min(points, MOST_COUNTED),
            is_capped=points > MOST_COUNTED,
        ),
        DependentCount(title="Open alerts", count=alerts.values("alerts").distinct().count()),
        _name_rows("Schedules", list(schedules.values_list("name", flat=True))),
        _name_rows("Reports", list(reports.values_list("title", flat=True))),
        _name_rows("Golden runs of hosts", list(golden.values_list("host__name", flat=True))),
        _name_rows(
            "Hosts calibrated with it", list(calibrated.values_list("name", flat=True).distinct())
        ),
    ]


def _name_rows(title: str, names: list[str]) -> DependentCount:
    more = ("…",) if len(names) > MOST_NAMES else ()
    return DependentCount(title=title, count=len(names), names=(*names[:MOST_NAMES], *more))


def _select_existing(*dependents: DependentCount) -> tuple[DependentCount, ...]:
    return tuple(each for each in dependents if each.count)


def _iterate_benchmark_steps(benchmark: Benchmark) -> Iterator[Callable[[], object]]:
    """Yield the steps in the order of dependencies; none while a run is unfinished."""
    runs = Run.objects.filter(definition__benchmark=benchmark)
    if runs.exclude(state__in=RUN_ENDED).exists():
        return
    for run in runs.only("pk").order_by("pk"):
        yield partial(remove_run, run)
    for case in Case.objects.filter(benchmark=benchmark).order_by("pk"):
        yield partial(remove_case, case)
    yield partial(_end_benchmark, benchmark)


def _iterate_project_steps(project: Project) -> Iterator[Callable[[], object]]:
    """Yield the last step of a project after those of its benchmarks."""
    if not Benchmark.with_deleted.filter(project=project).exists():
        yield partial(_end_project, project)


def _end_benchmark(benchmark: Benchmark) -> None:
    team, name = benchmark.project.team, f"{benchmark.project.slug}/{benchmark.slug}"
    remove_benchmark(benchmark)
    record_system_audit(team=team, action="benchmark.removed", subject=name)


def _end_project(project: Project) -> None:
    team, name = project.team, project.slug
    remove_project(project)
    record_system_audit(team=team, action="project.removed", subject=name)


def _run_steps(owner: Benchmark | Project, steps: Iterator[Callable[[], object]]) -> None:
    """Take some steps; an error in one object must not delay the others."""
    try:
        for step in islice(steps, STEPS):
            step()
    except Exception:
        logger.exception("a deleted object cannot be removed: %s %s", type(owner), owner.pk)
