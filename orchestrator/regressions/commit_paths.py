"""Paths between commits of a project, from the database."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.benchmarks.graph import (
    Node,
    find_ancestry_path,
    find_main_path,
    map_parents,
    merge_base,
)
from orchestrator.benchmarks.models import Commit
from orchestrator.results.models import ChangePoint

#: How many positions before a merge are searched for its base.
FARTHEST = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedPath:
    """The commits of a merge: hashes after `base`, where the branch started, up to its tip."""

    base: Commit
    path: list[str]


def find_path_between(before: Commit, after: Commit) -> list[str]:
    """Return hashes of the main line after `before` up to `after`; empty if one is not on it."""
    if not (before.mainline and after.mainline) or before.position is None:
        return []
    line = Commit.objects.filter(
        project=after.project_id,
        mainline=True,
        position__gt=before.position,
        position__lte=after.position,
    )
    return list(line.order_by("position").values_list("sha", flat=True))


def find_merged_path(merge: Commit) -> MergedPath | None:
    """Return the commits of a merge of two parents; None for others, or if not stored."""
    if len(merge.parents) != 2 or merge.position is None:
        return None
    first, second = merge.parents
    rows = Commit.objects.filter(
        project=merge.project_id,
        position__lt=merge.position,
        position__gte=max(merge.position - FARTHEST, 0),
    )
    nodes = [
        Node(sha=sha, parents=tuple(parents), committed_at=at)
        for sha, parents, at in rows.values_list("sha", "parents", "committed_at")
    ]
    base = merge_base(nodes, first, second)
    if base is None or base == second:
        return None
    path = find_main_path(map_parents(nodes), base, second) or find_ancestry_path(
        nodes, base, second
    )
    return MergedPath(base=Commit.objects.get(project=merge.project_id, sha=base), path=path)


def load_path_commits(row: ChangePoint, shas: Sequence[str]) -> list[Commit]:
    """Return the commits of these hashes in the project of a change point, in order."""
    project = row.series.benchmark.project_id
    by_sha = {each.sha: each for each in Commit.objects.filter(project=project, sha__in=shas)}
    return [by_sha[sha] for sha in shas]
