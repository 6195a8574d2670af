"""A project's connection with its forge, received webhooks and benchmark requests."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import Field, StringConstraints

from orchestrator.api.schemas.common import Text, Whole, build_api_url, build_web_url
from orchestrator.forges.models import (
    BenchmarkRequest,
    Connection,
    ForgeKind,
    ReceivedWebhook,
    RequestState,
)
from orchestrator.forges.services import MOST_BUDGET, NewConnection, SavedConnection

Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
#: It is sent in a header.
ForgeToken = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[!-~]+$")]


class ForgeIn(Schema, extra="forbid"):
    """`repository` is its name on the forge, such as `owner/name`. `hosts`: names, `profile:NAME`
    or `tag:NAME`. Each request may use `budget_minutes` of machine time on them."""

    kind: ForgeKind
    repository: Text
    api_url: Annotated[Text, Field(max_length=300)] | None = Field(
        None, description="Default: that of GitHub or GitLab. Required for Gitea."
    )
    token: ForgeToken | None = Field(
        None,
        description="To read pull requests, write comments and set commit statuses. Default: the "
        "stored token. Without a token Pitwall only receives pushes.",
    )
    allowed_users: Annotated[list[Text], Field(max_length=200)] = Field(
        [], description="User names on the forge that may request benchmarks."
    )
    hosts: Annotated[list[Annotated[Text, Field(max_length=100)]], Field(max_length=100)] = []
    budget_minutes: Annotated[Whole, Field(ge=1, le=MOST_BUDGET)] = 60

    def new_connection(self) -> NewConnection:
        given = self.model_dump(mode="json", exclude_none=True)
        lists = {name: tuple(given[name]) for name in ("allowed_users", "hosts")}
        return NewConnection(**{**given, **lists})


class ForgeOut(Schema):
    """`has_token`: whether a token is stored; it is never returned. The forge sends to
    `webhook_url`. Requests are run by `created_by`. `problem`: why the fetch after the last push
    failed; null if it succeeded."""

    project: str
    kind: ForgeKind
    repository: str
    api_url: str
    has_token: bool
    allowed_users: list[str]
    hosts: list[str]
    budget_minutes: int
    webhook_url: str
    problem: str | None
    created_by: str | None
    created_at: datetime
    url: str
    web_url: str


class SavedForgeOut(ForgeOut):
    """`secret` is for the webhook on the forge. It is returned only when the project is connected;
    later it is null."""

    secret: str | None


class WebhookSecretOut(Schema):
    """The secret is returned only once."""

    secret: str


class ReceivedWebhookOut(Schema):
    """A verified webhook of the forge; `outcome` describes the result."""

    id: int
    delivery: str
    event: str
    outcome: str
    at: datetime


class ReceivedWebhookPage(Schema):
    webhooks: list[ReceivedWebhookOut]
    next: str | None


class BenchmarkRequestOut(Schema):
    """`/benchmark NAME` in a comment. `commit` was the head at that time; null until it is known. A
    request from a fork waits until a member of the team approves exactly that commit. `problem`:
    why the last report to the forge failed."""

    id: UUID
    project: str
    number: int
    benchmark: str
    commit: str | None
    base_branch: str | None
    from_fork: bool
    requested_by: str
    approved_by: str | None
    state: RequestState
    message: str
    problem: str | None
    run: UUID | None
    at: datetime
    url: str
    web_url: str


class BenchmarkRequestPage(Schema):
    requests: list[BenchmarkRequestOut]
    next: str | None


class ApprovalIn(Schema, extra="forbid"):
    """`commit`: the whole hash of the reviewed commit."""

    commit: Sha


def build_forge_out(connection: Connection) -> ForgeOut:
    return ForgeOut(**_build_forge_fields(connection))


def build_saved_forge_out(saved: SavedConnection) -> SavedForgeOut:
    return SavedForgeOut(**_build_forge_fields(saved.connection), secret=saved.secret or None)


def build_received_webhook_out(webhook: ReceivedWebhook) -> ReceivedWebhookOut:
    return ReceivedWebhookOut(
        id=webhook.pk,
        delivery=webhook.delivery_id,
        event=webhook.event,
        outcome=webhook.outcome,
        at=webhook.at,
    )


def build_benchmark_request_out(request: BenchmarkRequest) -> BenchmarkRequestOut:
    pull, by = request.pull, request.approved_by
    slug = pull.connection.project.slug
    return BenchmarkRequestOut(
        id=request.pk,
        project=slug,
        number=pull.number,
        benchmark=request.benchmark,
        commit=request.head_sha or None,
        base_branch=request.base_branch or None,
        from_fork=request.from_fork,
        requested_by=request.requested_by,
        approved_by=by.get_username() if by else None,
        state=RequestState(request.state),
        message=request.message,
        problem=pull.problem or None,
        run=request.run_id,
        at=request.at,
        url=build_api_url(f"benchmark-requests/{request.pk}"),
        web_url=build_web_url("project-forge", slug),
    )


def _build_forge_fields(connection: Connection) -> dict[str, Any]:
    named = ("kind", "repository", "api_url", "allowed_users", "hosts", "budget_minutes")
    slug, by = connection.project.slug, connection.created_by
    return {
        **{name: getattr(connection, name) for name in named},
        "project": slug,
        "has_token": connection.sealed_token is not None,
        "webhook_url": build_web_url("forge-hook", connection.pk),
        "problem": connection.problem or None,
        "created_by": by.get_username() if by else None,
        "created_at": connection.created_at,
        "url": build_api_url(f"projects/{slug}/forge"),
        "web_url": build_web_url("project-forge", slug),
    }
