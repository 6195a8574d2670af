"""New commits on a branch since the last check."""

from dataclasses import dataclass

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.refs import check_fetched, open_repository, resolve_ref
from orchestrator.benchmarks.repository import Repository
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.earlier_commits import load_tags
from orchestrator.runs.models import Schedule

#: The limit of measured commits per push, the newest ones: a push may have years of history.
MOST_AT_ONCE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommits:
    """Hashes, oldest first; `skipped` counts older ones. `tags`: all tags of a schedule of tags."""

    tip: str = ""
    tags: tuple[str, ...] = ()
    shas: tuple[str, ...]
    skipped: int = 0


def load_tip(project: Project, branch: str) -> str:
    """Return the newest commit of a branch.

    InvalidRequestError if there is no such branch, FetchRunningError if a fetch has to end first.
    """
    repository = open_repository(project)
    check_fetched(project, known=branch in repository.branches())
    return _resolve_tip(repository, branch)


def find_new_commits(schedule: Schedule) -> NewCommits:
    """Return the new commits in the branch's line of first parents, or those of new tags.

    None at the first check. After a rewrite of the history all commits of the new line are new.
    FetchRunningError if a fetch has to end first.
    """
    project = schedule.benchmark.project
    check_fetched(project, known=True)
    if schedule.tags:
        return _find_new_tags(schedule)
    repository = open_repository(project)
    tip = _resolve_tip(repository, schedule.branch)
    if schedule.seen_sha in ("", tip):
        return NewCommits(tip=tip, shas=())
    shas = [tip]
    if repository.has(schedule.seen_sha):
        new = set(repository.only_in(tip, schedule.seen_sha))
        shas = [sha for sha in repository.first_parents(tip) if sha in new]
    if shas:
        # This stores all of them.
        resolve_ref(project=project, ref=tip)
    taken = shas[:MOST_AT_ONCE]
    return NewCommits(tip=tip, shas=tuple(reversed(taken)), skipped=len(shas) - len(taken))


def load_newest_tagged(project: Project, pattern: str) -> str:
    """Return the commit of the newest tag that matches; of the default branch if there is none."""
    tags = load_tags(project, pattern)
    return tags[0][1] if tags else load_tip(project, project.default_branch)


def _find_new_tags(schedule: Schedule) -> NewCommits:
    """A tag that was moved is not new. Several new tags of a commit count once."""
    tags = load_tags(schedule.benchmark.project, schedule.tags)
    names = tuple(name for name, _ in tags)
    if schedule.seen_tags is None:
        return NewCommits(tags=names, shas=())
    seen = set(schedule.seen_tags)
    shas = list(dict.fromkeys(sha for name, sha in tags if name not in seen))
    taken = shas[:MOST_AT_ONCE]
    return NewCommits(tags=names, shas=tuple(reversed(taken)), skipped=len(shas) - len(taken))


def _resolve_tip(repository: Repository, branch: str) -> str:
    tip = dict(repository.tips()).get(branch)
    if tip is None:
        raise InvalidRequestError(
            f"there is no branch {branch} in the repository; check the spelling, and that it was "
            "pushed",
            field="branch",
        )
    return tip
