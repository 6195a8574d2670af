"""Commits that only a file or a client names, placed by their dates among those of the project."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate

from django.db import connection, transaction

from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.reported_commits import ReportedCommit, build_reported_commit
from orchestrator.core.clock import utc_now

#: Make room for new commits: each anchor is a position at which one of them is inserted. The
#: anchors are sorted; width_bucket searches the number of those that are not greater.
_SHIFT = """
UPDATE benchmarks_commit SET position = position + width_bucket(position, %s::int[])
WHERE project_id = %s AND position >= %s
"""


@transaction.atomic
def store_dated_commits(project: Project, batch: Sequence[ReportedCommit]) -> None:
    """Store the commits of these hashes that are new; one without a date is the newest.

    A commit of the default branch comes after all commits that are not newer, and later commits
    move. Commits of other branches have no position.
    """
    # Other requests with new commits wait here, and then see ours.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    shas = [each.sha for each in batch]
    known = set(project.commits.filter(sha__in=shas).values_list("sha", flat=True))
    new = {each.sha: each for each in batch if each.sha not in known}
    now = utc_now()
    ordered = sorted(new.values(), key=lambda each: each.committed_at or now)
    on_branch = [each for each in ordered if each.branch in ("", project.default_branch)]
    positions = _make_room(project, [each.committed_at or now for each in on_branch])
    placed = {each.sha: position for each, position in zip(on_branch, positions, strict=True)}
    rows = [build_reported_commit(project, each, placed.get(each.sha)) for each in ordered]
    Commit.objects.bulk_create(rows, batch_size=1_000)


def _make_room(project: Project, dates: Sequence[datetime]) -> list[int]:
    """Return the positions of new commits with these dates, which are in order."""
    ordered = project.commits.filter(position__isnull=False).order_by("position")
    rows = [
        (position, at)
        for position, at in ordered.values_list("position", "committed_at")
        if position is not None
    ]
    # Dates may decrease along a branch; a new commit comes after all that are not newer.
    newest = list(accumulate((at for _, at in rows), max))
    after_last = rows[-1][0] + 1 if rows else 0
    anchors = []
    for date in dates:
        place = bisect_right(newest, date)
        anchors.append(rows[place][0] if place < len(rows) else after_last)
    moved = [anchor for anchor in anchors if anchor < after_last]
    if moved:
        with connection.cursor() as cursor:
            cursor.execute(_SHIFT, [moved, project.pk, moved[0]])
    return [anchor + number for number, anchor in enumerate(anchors)]
