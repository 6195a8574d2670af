"""The points of a series along a branch: up to its base on the default branch, then its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.benchmarks.graph import follow_first_parents
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import NotFoundError
from orchestrator.histories.lines import Points, join_points
from orchestrator.histories.points import load_commit_points, load_points, load_points_until


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchLine:
    """`base`: the position on the default branch where a branch begins; None if unknown.

    `own`: commit → position, for the commits of the branch alone, which follow the base.
    """

    base: int | None
    own: Mapping[int, int]


def load_branch_points(series: int, project: Project, branch: str) -> Points:
    """Return the points along a branch, by default the default branch; NotFoundError if unknown."""
    if branch in ("", project.default_branch):
        return load_points(series)
    line = load_branch_line(project, branch)
    parts = [load_commit_points(series, line.own)]
    if line.base is not None:
        parts.append(load_points_until(series, line.base))
    return join_points(parts)


def load_branch_line(project: Project, branch: str) -> BranchLine:
    tip = dict(project.branches).get(branch)
    if tip is None:
        problem = f"{project.name} has no branch {branch}; fetch the repository or choose another"
        raise NotFoundError(problem)
    place = project.commits.filter(sha=tip).values_list("position", flat=True).first()
    if place is not None:
        return BranchLine(base=place, own={})
    rows = list(project.commits.filter(position=None).values_list("sha", "pk", "parents"))
    parents = {sha: tuple(above) for sha, _, above in rows}
    line = follow_first_parents(parents, tip)
    above = parents[line[0]][:1] if line else ()
    base = project.commits.filter(sha__in=above).values_list("position", flat=True).first()
    ids = {sha: pk for sha, pk, _ in rows}
    start = 0 if base is None else base + 1
    return BranchLine(base=base, own={ids[sha]: start + n for n, sha in enumerate(line)})
