"""Store the commits of a repository with their order along the default branch, and other branches.

If commits were only appended to history, positions are only added at the end, so that existing
charts stay as they are. After a rewrite, commits that were dropped lose their positions, and new
ones come last.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max

from orchestrator.benchmarks.commit_facts import CommitFacts
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.repository import Repository
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotReadyError

HISTORY_LIMIT = 2_000
#: How far back towards the default branch the commits of another branch are stored.
BRANCH_LIMIT = 500
MAX_BRANCHES = 200
#: How many commits may be ahead of the repository: clients may report commits before the push.
LATER_THAN_KNOWN = 50
#: How often history is read again if another process stores commits at the same time.
MOST_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """Changes that the default branch requires in our rows.

    `kept`: whether a commit with a position is in the new history. `lost`: hashes that are no
    longer in it. `facts`: the new commits, parents first, after `skipped` older ones that are not
    stored. `joined` and `left`: hashes to mark as on and as off the line of first parents.
    """

    kept: bool = True
    lost: Collection[str] = ()
    facts: Sequence[CommitFacts] = ()
    skipped: int = 0
    joined: Collection[str] = ()
    left: Collection[str] = ()


def file_default_branch(project: Project, repository: Repository) -> None:
    """Store new commits of the default branch, and the tips of all branches; fetch before.

    Raise ConflictError if the project got another repository in the meantime, and NotReadyError if
    other processes keep storing commits at the same time.
    """
    for _ in range(MOST_TRIES):
        project.refresh_from_db(fields=["fetched_at"])
        tips = repository.tips()[:MAX_BRANCHES]
        history = _read_history(project, repository)
        if _store_history(project, history, tips):
            return
    raise NotReadyError(
        f"the commits of {project.slug} are being stored by another request; try again"
    )


def file_branch(project: Project, repository: Repository, sha: str) -> None:
    """Store a commit of another branch and its way back to the default branch."""
    facts = repository.new_since(sha, project.default_branch, limit=BRANCH_LIMIT)
    rows = [build_commit_row(project, each, None) for each in facts or [repository.describe(sha)]]
    Commit.objects.bulk_create(rows, ignore_conflicts=True)


def build_commit_row(project: Project, facts: CommitFacts, position: int | None) -> Commit:
    return Commit(
        project=project,
        sha=facts.sha,
        parents=list(facts.parents),
        subject=facts.subject,
        author=facts.author,
        committed_at=facts.committed_at,
        position=position,
    )


def _find_newest_filed(project: Project, repository: Repository) -> Commit | None:
    """Return the last commit in order that was stored from the repository.

    Later ones were reported by clients before the fetch: their data and positions are replaced.
    """
    ordered = project.commits.filter(position__isnull=False).order_by("-position")
    last = ordered[:LATER_THAN_KNOWN]
    known = repository.select_known([each.sha for each in last])
    held = [each for each in last if each.sha in known]
    if not held:
        # An imported history may have more commits that only it names.
        fetched = repository.select_fetched(list(ordered.values_list("sha", flat=True)))
        held = list(ordered.filter(sha__in=fetched)[:LATER_THAN_KNOWN])
    return next((each for each in held if _is_filed(each, repository)), held[-1] if held else None)


def _is_filed(commit: Commit, repository: Repository) -> bool:
    """Return whether the row equals the commit in the repository, and its parents are known."""
    facts = repository.describe(commit.sha)
    theirs = (list(facts.parents), facts.subject, facts.committed_at)
    if theirs != (commit.parents, commit.subject, commit.committed_at):
        return False
    known = Commit.objects.filter(project=commit.project_id, sha__in=facts.parents).count()
    return known == len(set(facts.parents))


def _read_history(project: Project, repository: Repository) -> _History:
    """Read git, which may take minutes, so without a lock."""
    tip = repository.find(project.default_branch)
    if tip is None:
        raise InvalidRequestError(
            f"there is no branch {project.default_branch} in the repository; push it, or correct "
            "the default branch of the project",
            field="default_branch",
        )
    newest = _find_newest_filed(project, repository)
    if newest is not None and newest.sha == tip and newest.mainline:
        return _History()
    rows = list(project.commits.values_list("sha", "mainline", "position"))
    lost: Collection[str] = ()
    if newest is None:
        # No known commit to compare the new history with.
        facts = repository.history(tip, limit=HISTORY_LIMIT)
        total = repository.count(tip)
    else:
        lost = repository.select_reachable([sha for sha, *_ in rows], newest.sha, without=tip)
        facts = repository.new_since(tip, newest.sha, limit=HISTORY_LIMIT)
        total = repository.count(tip, without=newest.sha)
    marked = {sha for sha, is_marked, _ in rows if is_marked}
    line = repository.select_first_parents(
        {sha for sha, *_ in rows} | {each.sha for each in facts}, tip
    )
    inside = repository.select_reachable(marked - line, tip) if marked - line else set()
    # Commits that only a client reported keep their positions.
    placed = {sha for sha, _, position in rows if position is not None} - set(lost)
    apart = placed - inside if newest is not None else set()
    return _History(
        kept=newest is not None,
        lost=lost,
        facts=facts,
        skipped=total - len(facts),
        joined=line - marked,
        left=marked - line - apart,
    )


@transaction.atomic
def _store_history(project: Project, history: _History, tips: Sequence[tuple[str, str]]) -> bool:
    """Store the history; False, with nothing stored, if another process stored since it was
    read."""
    # Two processes at once would give the same positions to different commits.
    locked = Project.with_deleted.select_for_update().get(pk=project.pk)
    if locked.repository_url != project.repository_url:
        raise ConflictError(
            f"the project {project.slug} got another repository during the fetch; fetch it again"
        )
    if locked.fetched_at != project.fetched_at:
        return False
    _store_positions(locked, history)
    locked.commits.filter(sha__in=history.joined).update(mainline=True)
    locked.commits.filter(sha__in=history.left).update(mainline=False)
    locked.branches, locked.fetched_at = [list(each) for each in tips], utc_now()
    locked.save(update_fields=["branches", "fetched_at"])
    project.branches, project.fetched_at = locked.branches, locked.fetched_at
    return True


def _store_positions(project: Project, history: _History) -> None:
    """Give positions to new commits, and remove those of commits that the branch lost."""
    ordered = project.commits.filter(position__isnull=False)
    if history.kept:
        ordered.filter(sha__in=history.lost).update(position=None)
    else:
        ordered.update(position=None)
    last = ordered.aggregate(last=Max("position"))["last"]
    first = (-1 if last is None else last) + 1 + history.skipped
    Commit.objects.bulk_create(
        [
            build_commit_row(project, fact, first + place)
            for place, fact in enumerate(history.facts)
        ],
        update_conflicts=True,
        unique_fields=["project", "sha"],
        # An API client may have reported the commit before, with its hash only.
        update_fields=["position", "parents", "subject", "author", "committed_at"],
    )
