"""Copies of fetched repositories: a fetch starts about ten processes of git, and most tests need
the same repository."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Commit, Fetch, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.refs import get_mirror_path
from orchestrator.database.clock import read_database_time
from tests.support.fetches import fetch_now

_FETCH_TIMES = ("requested_at", "started_at", "ended_at", "succeeded_at")
_COMMIT_FIELDS = (
    "sha", "parents", "subject", "author", "committed_at", "position", "mainline",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRepository:
    """The mirror of a repository, and the values that its fetch wrote."""

    mirror: Path
    commits: tuple[Mapping[str, Any], ...]
    branches: Any
    mirror_bytes: int

    @classmethod
    def read(cls, project: Project, folder: Path) -> "FetchedRepository":
        shutil.copytree(get_mirror_path(project), folder, symlinks=True)
        rows = project.commits.order_by("pk").values(*_COMMIT_FIELDS)
        return cls(
            mirror=folder,
            commits=tuple(rows),
            branches=project.branches,
            mirror_bytes=project.fetch.mirror_bytes,
        )

    def copy_to(self, project: Project) -> None:
        """Give a new project what its fetch would give it."""
        now = read_database_time()
        self.copy_mirror(project)
        Commit.objects.bulk_create(Commit(project=project, **values) for values in self.commits)
        Project.objects.filter(pk=project.pk).update(fetched_at=now, branches=self.branches)
        Fetch.objects.filter(pk=project.pk).update(
            **dict.fromkeys(_FETCH_TIMES, now),
            next_at=None,
            refs=[],
            clone=False,
            mirror_bytes=self.mirror_bytes,
        )
        project.refresh_from_db()

    def copy_mirror(self, project: Project) -> None:
        shutil.copytree(self.mirror, get_mirror_path(project), symlinks=True)


class FetchedRepositories:
    """The repositories that this process has fetched, by the content of their commits."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._known: dict[tuple[str, ...], FetchedRepository] = {}

    def create_project(self, member: Member, repository: Path, shas: list[str]) -> Project:
        """Create the project `server` whose repository has these commits, fetched."""
        fields = {"slug": "server", "name": "Server", "repository_url": str(repository)}
        known = self.find(shas)
        if known is not None:
            # Live servers have a thread for fetches, which must not see a fetch that is due.
            with transaction.atomic():
                project = create_project(member=member, **fields)
                known.copy_to(project)
            return project
        project = create_project(member=member, **fields)
        fetch_now(project)
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="pitwall-mirrors-")
        folder = Path(self._folder.name) / str(len(self._known))
        self._known[tuple(shas)] = FetchedRepository.read(project, folder)
        return project

    def find(self, shas: Sequence[str]) -> FetchedRepository | None:
        return self._known.get(tuple(shas))


FETCHED_REPOSITORIES = FetchedRepositories()
