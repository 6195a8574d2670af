"""Delete data beyond its retention in small batches, raw output first.

Each batch is one transaction that locks the project's Retention row. So two workers never prune the
same project, and changed settings apply from the next batch on. An interrupted removal continues
where it stopped. Removal rows record what was deleted.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from orchestrator.benchmarks.models import Project
from orchestrator.comparisons.verdict_cache import store_verdicts
from orchestrator.results.models import Pin, Removal, RemovalKind, Retention
from orchestrator.retention import delete_rows
from orchestrator.retention.delete_rows import DeletedRows
from orchestrator.retention.pins import RetainedData, load_kept
from orchestrator.retention.thinned_commits import select_spare_commits
from orchestrator.runs.models import Run, Variant
from orchestrator.runs.states import RUN_ENDED

logger = logging.getLogger(__name__)

#: Batches per project and task; `manage.py prune` continues to the end.
BATCHES = 20
#: Nothing more can be due within this time: retentions are counted in days.
CHECK_EVERY = timedelta(hours=1)

#: The kinds that are deleted by run, in this order, with the function that deletes a batch.
_OF_RUNS: dict[RemovalKind, Callable[[Run], DeletedRows]] = {
    RemovalKind.FILES: delete_rows.remove_files,
    RemovalKind.DISTRIBUTIONS: delete_rows.merge_distributions,
    RemovalKind.TRIALS: delete_rows.remove_trials,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRemoval:
    """The runs with data to delete, and its amount."""

    kind: RemovalKind
    after_days: int
    runs: int
    rows: int
    bytes: int


def prune_due(now: datetime) -> None:
    """Prune each project that is due; the tasks call it."""
    Retention.objects.bulk_create(
        [Retention(project=project) for project in Project.objects.filter(retention=None)],
        ignore_conflicts=True,
    )
    due = Project.objects.filter(Q(retention__next_at=None) | Q(retention__next_at__lte=now))
    for project in due.order_by("retention__next_at", "pk"):
        try:
            prune(project, now, batches=BATCHES)
        except Exception:
            # An error in one project must not delay the others.
            logger.exception("old results of the project %s cannot be removed", project.pk)


def prune(
    project: Project,
    now: datetime,
    *,
    batches: int | None = None,
    progress: Callable[[], None] = lambda: None,
) -> int:
    """Delete what is due, completely or in at most `batches` batches, and return their number.

    `progress` is called after each batch.
    """
    Retention.objects.get_or_create(project=project)
    kept = load_kept(project)
    done = 0
    while batches is None or done < batches:
        if not _prune_batch(project, kept, now):
            break
        done += 1
        progress()
    return done


def list_due(project: Project, now: datetime) -> list[DueRemoval]:
    """Return what `prune` would delete now; nothing is changed."""
    retention = Retention.objects.filter(project=project).first() or Retention(project=project)
    kept = load_kept(project)
    removals = []
    for kind, days in _read_days(retention):
        if kind in _OF_RUNS:
            runs = list(_load_due_runs(project, kind, _compute_cutoff(days, now), kept))
            gone = delete_rows.count_rows_to_delete(kind, runs)
        else:
            runs, gone = (
                [],
                _count_project_rows(project, kind, _compute_cutoff(days, now), retention, kept),
            )
        removals.append(
            DueRemoval(kind=kind, after_days=days, runs=len(runs), rows=gone.rows, bytes=gone.bytes)
        )
    return removals


@transaction.atomic
def _prune_batch(project: Project, kept: RetainedData, now: datetime) -> bool:
    """Delete the next batch.

    Return False if nothing is left or another worker prunes the project.
    """
    held = Retention.objects.select_for_update(skip_locked=True).filter(project=project).first()
    if held is None:
        return False
    for kind, days in _read_days(held):
        cutoff = _compute_cutoff(days, now)
        if kind in _OF_RUNS:
            run = _load_due_runs(project, kind, cutoff, kept).first()
            if run is not None:
                _remove_from_run(run, project, kind, days, now)
                return True
        elif _remove_from_project(project, kind, days, held, kept, now):
            return True
    Retention.objects.filter(pk=held.pk).update(next_at=now + CHECK_EVERY)
    return False


def _read_days(retention: Retention) -> list[tuple[RemovalKind, int]]:
    """Return the kinds that this project does not keep permanently, in the order of deletion."""
    periods = (
        (RemovalKind.FILES, retention.files_days),
        (RemovalKind.DISTRIBUTIONS, retention.distributions_days),
        (RemovalKind.TRIALS, retention.trials_days),
        (RemovalKind.READINGS, retention.trials_days),
        (RemovalKind.POINTS, retention.points_days),
    )
    return [(kind, days) for kind, days in periods if days is not None]


def _compute_cutoff(days: int, now: datetime) -> datetime:
    return now - timedelta(days=days)


def _load_due_runs(
    project: Project, kind: RemovalKind, cutoff: datetime, kept: RetainedData
) -> QuerySet[Run]:
    done = Removal.objects.filter(run=OuterRef("pk"), kind=kind, ended_at__isnull=False)
    variants = Variant.objects.filter(run=OuterRef("pk"))
    pinned = Pin.objects.filter(Q(run=OuterRef("pk")) | Q(commit__variants__run=OuterRef("pk")))
    return (
        Run.objects.filter(
            definition__benchmark__project=project, state__in=RUN_ENDED, ended_at__lt=cutoff
        )
        .exclude(pk__in=list(kept.runs))
        .exclude(Exists(done))
        .exclude(Exists(variants.filter(commit__in=list(kept.commits))))
        # Pins may have been added since `kept` was read.
        .exclude(Exists(pinned))
        .order_by("ended_at", "pk")
    )


def _remove_from_run(
    run: Run, project: Project, kind: RemovalKind, days: int, now: datetime
) -> None:
    if kind == RemovalKind.TRIALS:
        store_verdicts(run)
    gone = _OF_RUNS[kind](run)
    removal, _ = Removal.objects.get_or_create(
        run=run, kind=kind, defaults={"project": project, "after_days": days, "began_at": now}
    )
    _add(removal, gone, ended_at=None if gone.more else now)


def _remove_from_project(
    project: Project,
    kind: RemovalKind,
    days: int,
    held: Retention,
    kept: RetainedData,
    now: datetime,
) -> bool:
    cutoff = _compute_cutoff(days, now)
    if kind == RemovalKind.READINGS:
        gone = delete_rows.remove_readings(project, cutoff, kept.commits)
    else:
        commits = _select_spare_commits(project, held, cutoff, kept)
        gone = delete_rows.remove_points(commits, cutoff)
    if not gone.rows:
        return False
    today = Removal.objects.filter(
        project=project, run=None, kind=kind, began_at__gt=now - timedelta(days=1)
    ).first() or Removal(project=project, kind=kind, after_days=days, began_at=now)
    _add(today, gone, ended_at=now)
    return True


def _select_spare_commits(
    project: Project, held: Retention, cutoff: datetime, kept: RetainedData
) -> tuple[int, ...]:
    assert held.keep_every is not None, "the database refuses points_days without it"
    return select_spare_commits(project, held.keep_every, cutoff, {*kept.commits, *kept.points})


def _count_project_rows(
    project: Project, kind: RemovalKind, cutoff: datetime, retention: Retention, kept: RetainedData
) -> DeletedRows:
    if kind == RemovalKind.READINGS:
        return delete_rows.count_readings(project, cutoff, kept.commits)
    return delete_rows.count_points(_select_spare_commits(project, retention, cutoff, kept), cutoff)


def _add(removal: Removal, gone: DeletedRows, *, ended_at: datetime | None) -> None:
    removal.rows += gone.rows
    removal.bytes += gone.bytes
    removal.ended_at = ended_at
    removal.save()
