"""What a host needs to build a commit: its submodules and its files of Git LFS, or the reason why
it cannot be measured.

The answer is stored for each commit. A fetch worker fetches what jobs ask for; what cannot be
fetched is a problem of its commit, not of the project.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime

from django.db.models import F, Q

from orchestrator.benchmarks.mirrors import MirrorBusyError
from orchestrator.benchmarks.models import BuildSource, Commit, Project
from orchestrator.benchmarks.refs import (
    FetchRunningError,
    check_fetched,
    open_repository,
    open_repository_with,
    resolve_after_fetch,
)
from orchestrator.benchmarks.repository import Repository
from orchestrator.benchmarks.submodules import SubmoduleTree
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.database.clock import read_database_time

logger = logging.getLogger(__name__)

#: After this time a fetch starts with no further commit; the next fetch continues.
FETCH_S = 120.0
MOST_PROBLEM = 2_000


def load_build_source(project: Project, commit: Commit, *, since: datetime) -> BuildSource:
    """Return the source of a commit, for a job that started at `since`.

    An answer with a problem must be newer than `since`, so that each job tries again. Raise
    FetchRunningError until everything is fetched, and InvalidRequestError if the project
    cannot be fetched.
    """
    row = BuildSource.objects.filter(commit=commit).first()
    if row is not None and _is_usable(project, row, since):
        return row
    repository = open_repository_with(project, commit.sha, since)
    try:
        contents = repository.inspect(commit.sha)
    except InvalidRequestError as error:
        return _record(commit, problem=str(error))
    if not contents.submodules and not contents.lfs_files:
        return _record(commit)
    _request(commit, since)
    with resolve_after_fetch(lambda: since):
        check_fetched(project, known=False)
    # That fetch started before the request.
    raise FetchRunningError(project)


def read_submodules(source: BuildSource) -> list[SubmoduleTree]:
    return [SubmoduleTree(path, sha) for path, sha in source.submodules]


def fetch_requested_sources(
    project: Project, repository: Repository, on_progress: Callable[[str], None]
) -> None:
    """Fetch the submodules and files of Git LFS that jobs wait for; for the fetch worker.

    Raise MirrorBusyError if another process uses the mirror.
    """
    end = time.monotonic() + FETCH_S
    waiting = BuildSource.objects.filter(
        Q(read_at=None) | Q(read_at__lt=F("requested_at")),
        commit__project=project,
        requested_at__isnull=False,
    )
    for row in waiting.select_related("commit").order_by("requested_at"):
        if time.monotonic() > end:
            return
        try:
            fetched = repository.submodules.fetch(row.commit.sha, on_progress=on_progress)
            has_lfs_files = repository.lfs.fetch(row.commit.sha, fetched, on_progress=on_progress)
        except MirrorBusyError:
            raise
        except PitwallError as error:
            logger.info("a commit of project %s cannot be measured: %s", project.pk, error)
            _record(row.commit, problem=str(error))
        else:
            _record(
                row.commit,
                submodules=[list(each.tree) for each in fetched],
                has_lfs_files=has_lfs_files,
            )


def _is_usable(project: Project, row: BuildSource, since: datetime) -> bool:
    """Return whether the answer is new enough, or without a problem and still in the mirror."""
    if row.read_at is None or (row.requested_at is not None and row.read_at < row.requested_at):
        return False
    if row.read_at >= since:
        return True
    return not row.problem and _is_in_mirror(open_repository(project), row)


def _is_in_mirror(repository: Repository, row: BuildSource) -> bool:
    """Return whether the mirror has everything; it may have been lost or cloned again."""
    trees = read_submodules(row)
    if trees and not repository.submodules.has_all(trees):
        return False
    return not row.has_lfs_files or repository.lfs.has_all(row.commit.sha, trees)


def _request(commit: Commit, since: datetime) -> None:
    """Ask a fetch worker for what the commit needs, unless that was done after `since`."""
    row, _ = BuildSource.objects.get_or_create(commit=commit)
    if row.requested_at is None or row.requested_at < since:
        BuildSource.objects.filter(pk=row.pk).update(requested_at=read_database_time())


def _record(
    commit: Commit,
    *,
    submodules: list[list[str]] | None = None,
    has_lfs_files: bool = False,
    problem: str = "",
) -> BuildSource:
    row, _ = BuildSource.objects.update_or_create(
        commit=commit,
        defaults={
            "submodules": submodules or [],
            "has_lfs_files": has_lfs_files,
            "problem": problem[:MOST_PROBLEM],
            "read_at": read_database_time(),
        },
    )
    return row
