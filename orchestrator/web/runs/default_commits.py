"""The commits that the form of a run contains at first: the default branch of the project."""

from collections.abc import Mapping

from django.http import QueryDict

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import NotFoundError
from orchestrator.web.refs import load_chosen_benchmark


def build_default_commits(member: Member, given: Mapping[str, str]) -> dict[str, str]:
    """Return fields of the form that name the default branch, unless `given` names a commit.

    A newest commit without a parent is measured alone: there is nothing to compare it with.
    """
    project = _find_project(member, given.get("benchmark", ""))
    if project is None:
        return {}
    branch = project.default_branch
    usual = {"branch": branch, "default_branch": branch}
    if given.get("baseline") or given.get("contender"):
        return usual
    return {**usual, "baseline" if _is_first_commit(project) else "contender": branch}


def follow_default_branch(member: Member, data: QueryDict) -> QueryDict:
    """Return the sent fields; a default branch that the form filled in is the benchmark's.

    The user may have chosen a benchmark of another project since.
    """
    filled_in = data.get("default_branch", "")
    project = _find_project(member, data.get("benchmark", ""))
    if not filled_in or project is None or project.default_branch == filled_in:
        return data
    changed = data.copy()
    for name in ("contender", "branch", "default_branch"):
        if changed.get(name) == filled_in:
            changed[name] = project.default_branch
    return changed


def _find_project(member: Member, key: str) -> Project | None:
    try:
        benchmark = load_chosen_benchmark(member, key)
    except NotFoundError:
        return None
    return benchmark.project if benchmark else None


def _is_first_commit(project: Project) -> bool:
    """Return whether the newest commit of the default branch is known to have no parent."""
    tip = dict(project.branches).get(project.default_branch)
    commit = project.commits.filter(sha=tip).first() if tip else None
    return commit is not None and not commit.parents
