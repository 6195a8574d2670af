"""Reads of the removals by retention, to explain why data are no longer there."""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import Count, Max, QuerySet, Sum

from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import GoneError
from orchestrator.results.models import Removal, RemovalKind


def load_run_removals(run: UUID) -> Mapping[str, Removal]:
    """Return the removals from the trials of a run by kind."""
    removals = Removal.objects.filter(run=run, rows__gt=0).order_by("began_at")
    return {each.kind: each for each in removals}


def check_kept(run: UUID, *kinds: RemovalKind) -> None:
    """Raise GoneError if retention removed data of these kinds from the trials of the run."""
    removals = load_run_removals(run)
    for kind in kinds:
        if kind in removals:
            raise GoneError(f"{removals[kind].summary}, as the retention of its project says")


def load_newest_removals(project: Project, limit: int = 50) -> list[Removal]:
    """Return the newest removals that removed something."""
    return list(load_removals(project).order_by("-began_at", "-pk")[:limit])


def load_removals(project: Project) -> QuerySet[Removal]:
    """Return all removals that removed something."""
    return project.removals.filter(rows__gt=0).select_related("run__definition__benchmark")


def sum_removals(project: Project) -> list[dict[str, object]]:
    """Return totals by kind: `runs`, `rows` and `bytes` removed, and the `last` time."""
    rows = project.removals.filter(rows__gt=0).values("kind").order_by("kind")
    totals = {
        each["kind"]: each
        for each in rows.annotate(
            runs=Count("run"), gone=Sum("rows"), size=Sum("bytes"), last=Max("began_at")
        )
    }
    return [{**totals[kind], "title": kind.label} for kind in RemovalKind if kind in totals]
