"""Reads of what the retention took away, for those who ask for what is no longer there."""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import Count, Max, QuerySet, Sum

from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import GoneError
from orchestrator.results.models import Removal, Removed


def removals_of(run: UUID) -> Mapping[str, Removal]:
    """What of a run's trials was taken away, by kind; `told` says it in words."""
    found = Removal.objects.filter(run=run, rows__gt=0).order_by("began_at")
    return {each.what: each for each in found}


def check_kept(run: UUID, *kinds: Removed) -> None:
    """GoneError where something of these kinds was taken away from the run's trials."""
    removals = removals_of(run)
    for kind in kinds:
        if kind in removals:
            raise GoneError(f"{removals[kind].summary}, as the retention of its project says")


def log_of(project: Project, limit: int = 50) -> list[Removal]:
    """The newest removals that took something."""
    return list(removals_in(project).order_by("-began_at", "-pk")[:limit])


def removals_in(project: Project) -> QuerySet[Removal]:
    """All that took something."""
    return project.removals.filter(rows__gt=0).select_related("run__definition__benchmark")


def totals_of(project: Project) -> list[dict[str, object]]:
    """By kind: `runs`, `rows` and `bytes` that went, and the `last` time that some did."""
    rows = project.removals.filter(rows__gt=0).values("what").order_by("what")
    found = {
        each["what"]: each
        for each in rows.annotate(
            runs=Count("run"), gone=Sum("rows"), size=Sum("bytes"), last=Max("began_at")
        )
    }
    return [{**found[kind], "title": kind.label} for kind in Removed if kind in found]
