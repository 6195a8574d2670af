"""The commits of a backfill: the last n, each k-th, tags, or a range of a repository's history."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.refs import Refs, check_fetched, open_repository
from orchestrator.core.errors import InvalidRequestError

#: The most commits of a backfill.
MOST_COMMITS = 200
#: The most commits among which each k-th is taken.
MOST_LOOKED_AT = 10_000


class CommitSource(StrEnum):
    """Where the commits of a backfill come from."""

    LAST = "last"
    TAGS = "tags"
    RANGE = "range"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSelection:
    """Commits to measure.

    `last`: each `every`-th of the newest `count` commits of `branch` (default: the project's).
    `range`: each `every`-th commit from `since` to `until` (default: the tip of the default
    branch), both included. Both follow first parents, so a merge is one commit. `tags`: each
    `every`-th tag that matches the pattern `tags`, such as `v1.*`. The newest commit counts first.
    """

    source: CommitSource
    branch: str = ""
    count: int = 20
    every: int = 1
    tags: str = "*"
    since: str = ""
    until: str = ""

    def describe(self) -> str:
        each = "" if self.every == 1 else f", 1 in {self.every}"
        if self.source == CommitSource.TAGS:
            return f"tags {self.tags}{each}"
        if self.source == CommitSource.RANGE:
            return f"{self.since} to {self.until or 'the default branch'}{each}"
        return f"last {self.count} commits of {self.branch or 'the default branch'}{each}"


def select_commits(project: Project, selection: CommitSelection) -> list[Commit]:
    """Return the commits, newest first.

    InvalidRequestError if there are none or too many, FetchRunningError if a fetch has to end
    first.
    """
    _check_numbers(selection)
    shas = _FINDERS[selection.source](project, selection)[:: selection.every]
    if not shas:
        raise InvalidRequestError(
            "no commit matches; check the branch, the tags or the range",
            field=_FIELDS[selection.source],
        )
    if len(shas) > MOST_COMMITS:
        raise InvalidRequestError(
            f"these are {len(shas)} commits; a backfill measures at most {MOST_COMMITS}: "
            f"take 1 in {-(-len(shas) * selection.every // MOST_COMMITS)}",
            field="every",
        )
    return _load_commits(project, shas)


def spread_order(count: int) -> list[int]:
    """Return the places 0 to `count` - 1: both ends, then the middles of ever smaller gaps.

    So a curve over the whole history appears early, and becomes finer.
    """
    order = [0, count - 1][:count]
    gaps = deque([(0, count - 1)])
    while gaps:
        first, last = gaps.popleft()
        middle = (first + last) // 2
        if middle > first:
            order.append(middle)
            gaps += [(first, middle), (middle, last)]
    return order


def _check_numbers(selection: CommitSelection) -> None:
    for name, most in (("count", MOST_LOOKED_AT), ("every", MOST_LOOKED_AT)):
        if not 1 <= getattr(selection, name) <= most:
            raise InvalidRequestError(f"expected a number from 1 to {most}", field=name)


def _find_last(project: Project, selection: CommitSelection) -> list[str]:
    tip = _resolve(project, selection.branch or project.default_branch, "branch")
    return open_repository(project).first_parents(tip.sha)[: selection.count]


def _find_range(project: Project, selection: CommitSelection) -> list[str]:
    if not selection.since:
        raise InvalidRequestError("name the first commit of the range", field="since")
    since = _resolve(project, selection.since, "since")
    until = _resolve(project, selection.until or project.default_branch, "until")
    line = open_repository(project).first_parents(until.sha)
    if since.sha not in line:
        raise InvalidRequestError(
            f"{selection.since} is not on the line of first parents of {until.short_sha}: name "
            "a commit of that line",
            field="since",
        )
    shas = line[: line.index(since.sha) + 1]
    if len(shas) > MOST_LOOKED_AT:
        raise InvalidRequestError(
            f"the range has {len(shas)} commits; at most {MOST_LOOKED_AT} are possible",
            field="since",
        )
    return shas


def _find_tags(project: Project, selection: CommitSelection) -> list[str]:
    return list(dict.fromkeys(sha for _, sha in load_tags(project, selection.tags)))


def load_tags(project: Project, pattern: str) -> list[tuple[str, str]]:
    """Return the tags of commits that match the pattern with their hashes, newest first."""
    tags = open_repository(project).list_tag_tips()
    check_fetched(project, known=bool(tags))
    return [(name, sha) for name, sha in tags if fnmatchcase(name, pattern)][:MOST_LOOKED_AT]


def _resolve(project: Project, ref: str, field: str) -> Commit:
    try:
        return Refs(project).commit(ref)
    except InvalidRequestError as error:
        raise InvalidRequestError(str(error), field=field) from error


def _load_commits(project: Project, shas: Sequence[str]) -> list[Commit]:
    """Return the commits in the order of the hashes; new ones are stored."""
    known = _load_stored(project, shas)
    refs = Refs(project)
    for sha in shas:
        if sha not in known:
            # This stores the commits before it as well.
            refs.commit(sha)
            known = _load_stored(project, shas)
    return [known[sha] for sha in shas]


def _load_stored(project: Project, shas: Iterable[str]) -> dict[str, Commit]:
    return {commit.sha: commit for commit in project.commits.filter(sha__in=list(shas))}


_FINDERS = {
    CommitSource.LAST: _find_last,
    CommitSource.TAGS: _find_tags,
    CommitSource.RANGE: _find_range,
}
_FIELDS = {CommitSource.LAST: "branch", CommitSource.TAGS: "tags", CommitSource.RANGE: "since"}
