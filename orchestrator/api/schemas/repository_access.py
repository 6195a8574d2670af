"""The credentials and host key of a project's repository."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StringConstraints

from orchestrator.api.schemas.common import Text, build_api_url, build_web_url
from orchestrator.benchmarks.models import Project, RepositoryAccess

Token = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[!-~]+$")]
UserName = Annotated[str, StringConstraints(max_length=100, pattern=r"^[!-~]*$")]


class RepositoryAccessOut(Schema):
    """Private keys and tokens are never returned. `public_key` is null without a deploy key.
    `host_key` is the pinned fingerprint of the SSH server's key, null if none is pinned;
    `offered_host_key` is another key that the server showed, until a maintainer accepts it."""

    project: str
    credential: Literal["deploy_key", "token", "none"]
    public_key: str | None
    username: str | None
    host_key: str | None
    host_key_at: datetime | None
    offered_host_key: str | None
    offered_at: datetime | None
    changed_by: str | None
    changed_at: datetime | None
    url: str
    web_url: str


class RepositoryTokenIn(Schema, extra="forbid"):
    token: Token = Field(description="Read access to the repository is sufficient.")
    username: UserName = Field(
        "", description="Empty: a name that GitHub, GitLab and Gitea accept with any token."
    )


class GitHostKeyIn(Schema, extra="forbid"):
    """`fingerprint` of the offered key, as `SHA256:…`."""

    fingerprint: Annotated[Text, Field(max_length=100)]


def build_repository_access_out(project: Project, row: RepositoryAccess) -> RepositoryAccessOut:
    by = row.changed_by
    return RepositoryAccessOut(
        project=project.slug,
        credential=row.kind,
        public_key=row.public_key or None,
        username=row.username or None,
        host_key=row.host_fingerprint or None,
        host_key_at=row.host_key_at if row.host_key else None,
        offered_host_key=row.offered_fingerprint or None,
        offered_at=row.offered_at,
        changed_by=by.get_username() if by else None,
        changed_at=row.changed_at,
        url=build_api_url(f"projects/{project.slug}/repository-access"),
        web_url=build_web_url("project-access", project.slug),
    )
