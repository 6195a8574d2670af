"""What came to a branch since it was looked at last."""

from dataclasses import dataclass

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.repository import Repository
from orchestrator.benchmarks.services import commit_of_ref, repository_of
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.models import Schedule

#: Of one push at most so many commits are measured, the newest: somebody may push years of work.
MOST_AT_ONCE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommits:
    """Hashes in the order of the branch, oldest first; `left_out` are older ones."""

    tip: str
    shas: tuple[str, ...]
    left_out: int = 0


def tip_of(project: Project, branch: str) -> str:
    """The newest commit of a branch; InvalidRequestError where there is no such branch."""
    return _tip(project, _fetched(project), branch)


def new_commits(schedule: Schedule) -> NewCommits:
    """Those of the branch's line of first parents that what was seen before does not contain.

    None at the first look. After a rewritten history all of the new line counts as new.
    """
    project = schedule.benchmark.project
    repository = _fetched(project)
    tip = _tip(project, repository, schedule.branch)
    if schedule.seen_sha in ("", tip):
        return NewCommits(tip=tip, shas=())
    found = [tip]
    if repository.has(schedule.seen_sha):
        new = set(repository.only_in(tip, schedule.seen_sha))
        found = [sha for sha in repository.first_parents(tip) if sha in new]
    if found:
        # Files them all, so that the runs of the others need not ask the remote again.
        commit_of_ref(project=project, ref=tip)
    taken = found[:MOST_AT_ONCE]
    return NewCommits(tip=tip, shas=tuple(reversed(taken)), left_out=len(found) - len(taken))


def _fetched(project: Project) -> Repository:
    repository = repository_of(project)
    repository.fetch()
    return repository


def _tip(project: Project, repository: Repository, branch: str) -> str:
    found = dict(repository.tips()).get(branch)
    if found is None:
        raise InvalidRequestError(
            f"there is no branch {branch} in the repository; check the spelling, and that it was "
            "pushed",
            field="branch",
        )
    return found
