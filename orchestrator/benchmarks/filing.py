"""Filing the commits of a repository: their order along the default branch, and other branches.

Positions are only ever added at the end where history was only appended to, so that what was
charted by them stays where it is. After a rewritten history the commits that were dropped lose
theirs, and what is new follows.
"""

from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import Max

from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.repository import CommitFacts, Repository
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError

HISTORY_LIMIT = 2_000
#: Of another branch: so far back towards the default branch are its commits filed.
BRANCH_LIMIT = 500
MAX_BRANCHES = 200
#: So many commits may be ahead of the repository: clients tell of them before they are pushed.
LATER_THAN_KNOWN = 50


def file_default_branch(project: Project, repository: Repository) -> None:
    """Files what is new on the default branch, and where all branches are; fetch before."""
    tip = repository.find(project.default_branch)
    if tip is None:
        raise InvalidRequestError(
            f"there is no branch {project.default_branch} in the repository; push it, or correct "
            "the default branch of the project",
            field="default_branch",
        )
    tips = repository.tips()[:MAX_BRANCHES]
    with transaction.atomic():
        # Two at once would give the same places to different commits.
        locked = Project.objects.select_for_update().get(pk=project.pk)
        newest = _newest_known(locked, repository)
        if newest is None or newest.sha != tip:
            _file_positions(locked, repository, newest, tip)
        if newest is None or newest.sha != tip or not newest.mainline:
            _mark_mainline(locked, repository, tip)
        locked.branches, locked.fetched_at = [list(each) for each in tips], utc_now()
        locked.save(update_fields=["branches", "fetched_at"])
    project.branches, project.fetched_at = locked.branches, locked.fetched_at


def file_branch(project: Project, repository: Repository, sha: str) -> None:
    """Files a commit of another branch and its way back to the default branch."""
    facts = repository.new_since(sha, project.default_branch, limit=BRANCH_LIMIT)
    rows = [commit_row(project, each, None) for each in facts or [repository.describe(sha)]]
    Commit.objects.bulk_create(rows, ignore_conflicts=True)


def commit_row(project: Project, facts: CommitFacts, position: int | None) -> Commit:
    return Commit(
        project=project,
        sha=facts.sha,
        parents=list(facts.parents),
        subject=facts.subject,
        author=facts.author,
        committed_at=facts.committed_at,
        position=position,
    )


def _newest_known(project: Project, repository: Repository) -> Commit | None:
    """The last commit in order that was filed from the repository.

    Later ones were named by clients before they were fetched: what they said, and the places that
    they were given, are replaced.
    """
    ordered = project.commits.filter(position__isnull=False).order_by("-position")
    held = [each for each in ordered[:LATER_THAN_KNOWN] if repository.has(each.sha)]
    return next((each for each in held if _is_filed(each, repository)), held[-1] if held else None)


def _is_filed(commit: Commit, repository: Repository) -> bool:
    """Whether the row says what the repository says, and its parents are known."""
    facts = repository.describe(commit.sha)
    theirs = (list(facts.parents), facts.subject, facts.committed_at)
    if theirs != (commit.parents, commit.subject, commit.committed_at):
        return False
    known = Commit.objects.filter(project=commit.project_id, sha__in=facts.parents).count()
    return known == len(set(facts.parents))


def _file_positions(
    project: Project, repository: Repository, newest: Commit | None, tip: str
) -> None:
    """Gives places to what the branch has since `newest`, and takes those of what it lost."""
    if newest is None:
        # Nothing is known that the new history could be measured against.
        project.commits.filter(position__isnull=False).update(position=None)
        facts = repository.history(tip, limit=HISTORY_LIMIT)
        _store(project, facts, repository.count(tip) - len(facts))
        return
    lost = repository.only_in(newest.sha, tip)
    project.commits.filter(sha__in=lost).update(position=None)
    last = project.commits.aggregate(last=Max("position"))["last"]
    facts = repository.new_since(tip, newest.sha, limit=HISTORY_LIMIT)
    skipped = len(repository.only_in(tip, newest.sha)) - len(facts)
    _store(project, facts, (-1 if last is None else last) + 1 + skipped)


def _store(project: Project, facts: Sequence[CommitFacts], first: int) -> None:
    Commit.objects.bulk_create(
        [commit_row(project, fact, first + place) for place, fact in enumerate(facts)],
        update_conflicts=True,
        unique_fields=["project", "sha"],
        # A client of the API may have named the commit before, and known no more than its hash.
        update_fields=["position", "parents", "subject", "author", "committed_at"],
    )


def _mark_mainline(project: Project, repository: Repository, tip: str) -> None:
    line, inside = set(repository.first_parents(tip)), set(repository.contained(tip))
    known = list(project.commits.values_list("pk", "sha", "mainline", "position"))
    _set_mainline([pk for pk, sha, marked, _ in known if sha in line and not marked], True)
    # What only a client told of keeps the place that it was given.
    off = [
        pk
        for pk, sha, marked, position in known
        if marked and sha not in line and (sha in inside or position is None)
    ]
    _set_mainline(off, False)


def _set_mainline(commits: Collection[int], value: bool) -> None:
    Commit.objects.filter(pk__in=commits).update(mainline=value)
