"""The commits of a project whose points `thinning` may delete."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Exists, OuterRef

from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.refs import open_repository
from orchestrator.results.models import ChangePoint, ChangeState, Point
from orchestrator.retention.thinning import Place, select_spare


def select_spare_commits(
    project: Project, every: int, cutoff: datetime, kept: Collection[int]
) -> tuple[int, ...]:
    """Return commits made before `cutoff` whose points may be deleted.

    Tags, `kept` commits and those that `spare` keeps stay. Without a mirror there are none, because
    it is unknown which commits are tagged.
    """
    tagged = open_repository(project).tagged()
    if tagged is None:
        if project.repository_url:
            return ()
        tagged = set()
    points = Point.objects.filter(commit=OuterRef("pk"))
    measured = Commit.objects.filter(Exists(points), project=project).order_by("position", "pk")
    rows = list(measured.values_list("pk", "position", "parents", "committed_at", "sha"))
    changes = ChangePoint.objects.filter(series__benchmark__project=project).exclude(
        state__in=[ChangeState.SUPERSEDED, ChangeState.REFUTED]
    )
    return select_spare(
        [
            Place(commit=pk, position=position, parents=len(parents))
            for pk, position, parents, _, _ in rows
        ],
        every=every,
        old={pk for pk, _, _, at, _ in rows if at < cutoff},
        kept={*kept, *(pk for pk, _, _, _, sha in rows if sha in tagged)},
        changes=set(changes.values_list("commit_id", flat=True)),
    )
