"""Projects: the git repositories of a team, and their commits."""

from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import Field, StringConstraints

from orchestrator.api.schemas.common import Text, build_api_url, build_web_url
from orchestrator.benchmarks.models import Commit, Fetch, Project

Slug = Annotated[str, StringConstraints(max_length=60, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]


class ProjectIn(Schema, extra="forbid"):
    slug: Slug
    name: Annotated[Text, Field(max_length=100)] | None = None
    repository_url: Annotated[Text, Field(max_length=500)] = Field(
        description="`https://…` or `ssh://…`; it is fetched after the project is created."
    )
    default_branch: Text = "main"


class FetchOut(Schema):
    """The newest fetch of a project's repository.

    `state` is `running`, `queued`, `failed`, `done` or `never`; `progress` is the output of git
    while it runs. `error` and `failures` are those since the last success.
    """

    state: str
    progress: str
    error: str
    failures: int
    requested_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    succeeded_at: datetime | None
    next_at: datetime | None
    mirror_bytes: int | None


class ProjectChangeIn(Schema, extra="forbid"):
    """Omitted fields stay as they are. The slug cannot be changed."""

    name: Annotated[Text, Field(max_length=100)] | None = None
    repository_url: Annotated[Text, Field(max_length=500)] | None = None
    default_branch: Annotated[Text, Field(max_length=200)] | None = None


class ProjectOut(Schema):
    """`benchmarks` by their slugs. These settings are separate objects: `changes`, `retention`,
    `pins`."""

    project: str
    name: str
    repository_url: str
    default_branch: str
    fetched_at: datetime | None
    fetch: FetchOut
    benchmarks: list[str]
    url: str
    web_url: str


class ProjectPage(Schema):
    projects: list[ProjectOut]
    next: str | None


class ProjectCommitOut(Schema):
    commit: str
    short: str
    subject: str
    author: str
    committed_at: datetime


class ProjectCommitPage(Schema):
    commits: list[ProjectCommitOut]
    next: str | None


class BranchOut(Schema):
    """A branch as of the last fetch."""

    branch: str
    commit: str


class RefsOut(Schema):
    """Branches by name, and tags, newest first."""

    branches: list[BranchOut]
    tags: list[str]


def build_fetch_out(fetch: Fetch) -> FetchOut:
    return FetchOut(
        state=fetch.state,
        progress=fetch.progress,
        error=fetch.error,
        failures=fetch.failures,
        requested_at=fetch.requested_at,
        started_at=fetch.started_at,
        ended_at=fetch.ended_at,
        succeeded_at=fetch.succeeded_at,
        next_at=fetch.next_at,
        mirror_bytes=fetch.mirror_bytes,
    )


def build_project_out(project: Project) -> ProjectOut:
    return ProjectOut(
        project=project.slug,
        name=project.name,
        repository_url=project.repository_url,
        default_branch=project.default_branch,
        fetched_at=project.fetched_at,
        fetch=build_fetch_out(
            project.fetch if hasattr(project, "fetch") else Fetch(project=project)
        ),
        benchmarks=sorted(each.slug for each in project.benchmarks.all() if not each.is_draft),
        url=build_api_url(f"projects/{project.slug}"),
        web_url=build_web_url("project", project.slug),
    )


def build_project_commit_out(commit: Commit) -> ProjectCommitOut:
    return ProjectCommitOut(
        commit=commit.sha,
        short=commit.short_sha,
        subject=commit.subject,
        author=commit.author,
        committed_at=commit.committed_at,
    )
