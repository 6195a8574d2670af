"""The secrets of a project, without their values."""

from datetime import datetime

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import build_api_url, build_web_url
from orchestrator.benchmarks.models import Project, ProjectSecret
from orchestrator.benchmarks.project_secrets import MOST_VALUE_BYTES
from orchestrator.core.storable_text import StorableText


class SecretOut(Schema):
    """`version` counts the values that the secret had; its value is never returned."""

    name: str
    version: int
    changed_by: str | None
    changed_at: datetime
    last_used_at: datetime | None
    url: str
    web_url: str


class SecretList(Schema):
    secrets: list[SecretOut]


class SecretIn(Schema, extra="forbid"):
    value: StorableText = Field(
        description=f"At least 8 characters, at most {MOST_VALUE_BYTES} bytes; line breaks are "
        "allowed."
    )


def build_secret_out(project: Project, row: ProjectSecret) -> SecretOut:
    by = row.changed_by
    return SecretOut(
        name=row.name,
        version=row.version,
        changed_by=by.get_username() if by else None,
        changed_at=row.changed_at,
        last_used_at=row.last_used_at,
        url=build_api_url(f"projects/{project.slug}/secrets/{row.name}"),
        web_url=build_web_url("project-secrets", project.slug),
    )
