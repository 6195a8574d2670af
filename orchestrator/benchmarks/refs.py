"""A project's repository, and the commits that branches, tags, hashes and rules name in it.

Names are resolved in the mirror. FetchRunningError means that a name needs a newer fetch first.

A git ref has no colon in its name, so a rule is allowed wherever a baseline can be named.
`merge-base:main` is the commit where the contender left the branch. `newest-measured:main` is the
newest commit of the branch that has results of this benchmark.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from django.conf import settings

from orchestrator.accounts.quotas import load_quotas
from orchestrator.benchmarks.access import load_git_access
from orchestrator.benchmarks.fetch_requests import PAUSES_S, UNKNOWN_AGAIN, load_fetch
from orchestrator.benchmarks.filing import file_branch, file_default_branch
from orchestrator.benchmarks.mirror_limits import TeamMirrors
from orchestrator.benchmarks.mirrors import build_mirror_name
from orchestrator.benchmarks.models import Benchmark, Commit, Fetch, Project
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.repository import Limits, Repository
from orchestrator.benchmarks.suite_repositories import find_suite_repository
from orchestrator.core.errors import InvalidRequestError, NotReadyError
from orchestrator.database.clock import read_database_time

#: A name or hash, and the steps from it, such as `~1`.
_PARTS = re.compile(r"^([^~^]*)(.*)$", re.DOTALL)
_HASH = re.compile(r"^[0-9a-f]{7,40}$")
#: Failures in a row after which a request that a user waits for is rejected.
TRIES = 3
#: The same for a request that no user waits for: then no further attempt is planned.
TRIES_UNWATCHED = len(PAUSES_S) + 1
#: Older commits are too old to be a baseline.
MAX_COMMITS = 2000


def open_repository(project: Project) -> Repository:
    suite = find_suite_repository(project.repository_url)
    remote = Remote(
        url=str(suite or project.repository_url),
        allow_local=settings.ALLOW_LOCAL_REPOSITORIES or suite is not None,
        allowed=settings.ALLOWED_INTERNAL_NETWORKS,
        proxy=settings.GIT_PROXY,
        private=None if suite else Path(settings.DATA_DIR),
        access=partial(load_git_access, project),
    )
    limits = Limits(
        fetch_timeout_s=settings.GIT_FETCH_TIMEOUT_S,
        mirror_bytes=settings.GIT_MIRROR_LIMIT_MIB << 20,
        packed_bytes=settings.GIT_PACKED_LIMIT_MIB << 20,
        free_bytes=settings.MIN_FREE_DISK_MIB << 20,
    )
    mirrors = partial(load_team_mirrors, project)
    return Repository(remote, get_mirror_path(project), limits=limits, team_mirrors=mirrors)


def get_mirror_path(project: Project) -> Path:
    """Return the folder of the mirror; each URL has another, so that servers never share
    content."""
    name = build_mirror_name(project.pk, project.repository_url)
    return Path(settings.DATA_DIR) / "repositories" / name


def load_team_mirrors(project: Project) -> TeamMirrors:
    """Return the mirrors of the project's team on this machine, including those of former URLs.

    A fetch measures them on the disk, because other fetches of the team write at the same time.
    """
    team = project.team
    return TeamMirrors(
        team=team.name,
        root=Path(settings.DATA_DIR) / "repositories",
        projects=frozenset(Project.with_deleted.filter(team=team).values_list("pk", flat=True)),
        most_bytes=load_quotas(team).mirrors_bytes,
    )


def read_refs(project: Project) -> tuple[list[tuple[str, str]], list[str]]:
    """Return branches with their tips, and tags, of the local mirror; none without a mirror."""
    repository = open_repository(project)
    try:
        return repository.tips(), repository.tags()
    except InvalidRequestError:
        return [], []


class _FetchScope(NamedTuple):
    """The rules of the current request.

    `since` returns when it was first made (None: now). `strict`: names must come from a fetch after
    that time, even if the mirror knows them. `tries`: the failures after which it is rejected.
    `reads`: it requests no fetch.
    """

    since: Callable[[], datetime | None]
    strict: bool
    tries: int
    reads: bool = False


_asked: ContextVar[_FetchScope | None] = ContextVar("asked", default=None)


class FetchRunningError(NotReadyError):
    """A name can be resolved only after a fetch; the code that catches this requests it.

    `problem`: why the last fetch failed, empty if it did not.
    """

    def __init__(self, project: Project, *, urgent: bool = True, problem: str = "") -> None:
        last = f"; the last attempt failed: {problem}" if problem else ""
        super().__init__(f"the repository of {project.slug} is being fetched{last}")
        self.project = project
        self.urgent = urgent
        self.problem = problem


@contextmanager
def resolve_after_fetch(
    since: Callable[[], datetime | None], *, tries: int = TRIES
) -> Iterator[None]:
    """Within the context, resolve branches and tags from a fetch that started after this time.

    `since` returns None if the request is made for the first time. `tries`: see
    `Fetch.has_failed_since`.
    """
    token = _asked.set(_FetchScope(since, strict=True, tries=tries))
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def resolve_at_last_fetch() -> Iterator[None]:
    """Within the context, resolve names as of the last fetch, and request none.

    An unknown name waits for a fetch that another request started.
    """
    token = _asked.set(_FetchScope(lambda: None, strict=False, tries=TRIES, reads=True))
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def resolve_as_fetched() -> Iterator[None]:
    """Within the context, resolve names that the mirror knows as of the last fetch.

    Other names wait for a fetch.
    """
    scope = _asked.get()
    token = _asked.set(scope and scope._replace(strict=False))
    try:
        yield
    finally:
        _asked.reset(token)


def check_fetched(project: Project, *, known: bool) -> None:
    """Return if the mirror may resolve a name now; `known`: the mirror knows it.

    Raise FetchRunningError if a fetch has to end first, and InvalidRequestError if it failed
    several times.
    """
    scope = _asked.get()
    strict = scope is not None and scope.strict
    if known and not strict:
        return
    fetch = load_fetch(project)
    if scope is not None and scope.reads:
        _check_read(fetch)
        return
    since = scope.since() if scope else read_database_time() - UNKNOWN_AGAIN
    has_succeeded = since is not None and fetch.has_succeeded_since(since)
    # After a fetch that succeeded, the mirror may be lost or belong to an earlier URL.
    if has_succeeded and not open_repository(project).is_empty():
        return
    has_failed = since is not None and fetch.has_failed_since(since, scope.tries if scope else 1)
    if has_failed or (not strict and fetch.state == "failed"):
        raise _build_fetch_error(fetch)
    raise FetchRunningError(project, urgent=strict, problem=fetch.error)


def open_repository_with(project: Project, sha: str, since: datetime) -> Repository:
    """Return the mirror of the project with this commit, for a job that started at `since`.

    FetchRunningError if it was lost: a fetch after that time must bring it back.
    InvalidRequestError if that fetch failed or did not bring the commit.
    """
    repository = open_repository(project)
    if not repository.has(sha):
        with resolve_after_fetch(lambda: since):
            check_fetched(project, known=False)
        repository.resolve(sha)
    return repository


def _check_read(fetch: Fetch) -> None:
    if fetch.state == "failed":
        raise _build_fetch_error(fetch)
    if fetch.is_going_on:
        raise FetchRunningError(fetch.project, urgent=False, problem=fetch.error)


def _build_fetch_error(fetch: Fetch) -> InvalidRequestError:
    return InvalidRequestError(
        f"the repository of {fetch.project.slug} could not be fetched: {fetch.error}"
    )


class Refs:
    """Resolves names in the mirror; one object resolves each name once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._bases: dict[str, str] = {}

    def commit(self, ref: str) -> Commit:
        """Return the commit of a branch, tag or hash.

        A new commit is stored together with those before it, along the default branch or back to
        it. Raise InvalidRequestError if there is none, and FetchRunningError if a fetch has to end
        first.
        """
        ref = ref.strip()
        return self._find_filed(ref) or self._filed(self._resolve(ref))

    def _resolve(self, ref: str) -> str:
        repository = open_repository(self._project)
        parts = _PARTS.match(ref)
        base, way = (parts[1], parts[2]) if parts else (ref, "")
        if base not in self._bases:
            sha = repository.find(base)
            if sha is None or not (_HASH.match(base) and sha.startswith(base)):
                check_fetched(self._project, known=sha is not None)
                # A fetch may have ended since the first attempt.
                sha = repository.resolve(base)
            self._bases[base] = sha
        return repository.resolve(f"{self._bases[base]}{way}") if way else self._bases[base]

    def _filed(self, sha: str) -> Commit:
        known = self._find_filed(sha)
        if known is None:
            file_default_branch(self._project, open_repository(self._project))
            known = self._find_filed(sha)
        if known is None:
            file_branch(self._project, open_repository(self._project), sha)
            known = self._project.commits.get(sha=sha)
        return known

    def _find_filed(self, sha: str) -> Commit | None:
        return self._project.commits.filter(sha=sha).first()


def resolve_ref(*, project: Project, ref: str) -> Commit:
    """Return `Refs.commit` of a single name."""
    return Refs(project).commit(ref)


def is_rule(baseline: str) -> bool:
    return ":" in baseline


def resolve_baseline(
    benchmark: Benchmark, rule: str, contenders: list[Commit], refs: Refs
) -> Commit:
    """Find the baseline by a rule; InvalidRequestError if it is unknown or finds no commit."""
    name, _, branch = rule.partition(":")
    find = _RULES.get(name)
    if find is None or not branch:
        known = ", ".join(f"{each}:BRANCH" for each in _RULES)
        raise _build_rule_error(
            f"expected a commit, branch or tag, or one of {known}; got {rule!r}"
        )
    if not contenders:
        raise _build_rule_error(f"{rule} needs a contender: name the commit to compare")
    return find(benchmark, branch, contenders, refs)


def _merge_base(benchmark: Benchmark, branch: str, contenders: list[Commit], refs: Refs) -> Commit:
    """Return the merge base, or the first parent of a contender that is already on the branch."""
    contender = contenders[0]
    tip = refs.commit(branch)
    sha = open_repository(benchmark.project).merge_base(tip.sha, contender.sha)
    if sha is None:
        raise _build_rule_error(f"{contender.short_sha} and {branch} have no commit in common")
    if sha == contender.sha:
        if not contender.parents:
            raise _build_rule_error(f"{contender.short_sha} is the first commit and has no parent")
        sha = contender.parents[0]
    return refs.commit(sha)


def _find_newest_measured(
    benchmark: Benchmark, branch: str, contenders: list[Commit], refs: Refs
) -> Commit:
    tip = refs.commit(branch)
    line = open_repository(benchmark.project).first_parents(tip.sha)[:MAX_COMMITS]
    left = [sha for sha in line if sha not in {commit.sha for commit in contenders}]
    # Imported results count as well: they have points too.
    measured = set(
        Commit.objects.filter(
            project=benchmark.project,
            sha__in=left,
            points__series__benchmark=benchmark,
            points__trials__gt=0,
        ).values_list("sha", flat=True)
    )
    newest = next((sha for sha in left if sha in measured), None)
    if newest is None:
        raise _build_rule_error(
            f"of the newest {len(left)} commits of {branch} none was measured with "
            f"{benchmark.slug}: name a commit, or measure {branch} first"
        )
    return refs.commit(newest)


def _build_rule_error(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, field="baseline")


_RULES: Mapping[str, Callable[[Benchmark, str, list[Commit], Refs], Commit]] = MappingProxyType(
    {"merge-base": _merge_base, "newest-measured": _find_newest_measured}
)
