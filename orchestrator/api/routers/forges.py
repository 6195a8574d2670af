"""Connections of projects with their forges, and the benchmarks requested there."""

from http import HTTPStatus
from uuid import UUID

from ninja import Router
from ninja.responses import Status

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, NumberCursor, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.forges import (
    ApprovalIn,
    BenchmarkRequestOut,
    BenchmarkRequestPage,
    ForgeIn,
    ForgeOut,
    ReceivedWebhookPage,
    SavedForgeOut,
    WebhookSecretOut,
    build_benchmark_request_out,
    build_forge_out,
    build_received_webhook_out,
    build_saved_forge_out,
)
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import load_project
from orchestrator.dispatch.wakeups import wake_forges
from orchestrator.forges import services
from orchestrator.forges.models import RequestState
from orchestrator.forges.selectors import (
    load_connection,
    load_requests,
    load_webhooks,
    request_for,
)

router = Router(tags=["forges"])

FORGE = "/projects/{project}/forge"
REQUEST = "/benchmark-requests/{uuid:request_id}"


@router.get(FORGE, response=ForgeOut, summary="Show a project's forge")
def show_forge(request: CallerRequest, project: Text) -> ForgeOut:
    """404 if the project is not connected with a forge."""
    return build_forge_out(load_connection(*_load_project(request, project)))


@router.put(FORGE, response=SavedForgeOut, summary="Connect a project with its forge")
def save_forge(request: CallerRequest, project: Text, payload: ForgeIn) -> SavedForgeOut:
    """For maintainers. Replaces all settings except the secret of the webhook; without a `token`
    the stored one stays. The token's owner starts future requests."""
    member, instance = _load_project(request, project)
    new = payload.new_connection()
    return build_saved_forge_out(services.save_connection(member=member, project=instance, new=new))


@router.delete(FORGE, response={204: None}, summary="Disconnect a project from its forge")
def disconnect_forge(request: CallerRequest, project: Text) -> Status[None]:
    """For maintainers. Its webhooks and benchmark requests are removed too; runs remain."""
    member, instance = _load_project(request, project)
    services.disconnect(member=member, project=instance)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.post(
    FORGE + "/secret", response=WebhookSecretOut, summary="Generate a new secret for the webhook"
)
def renew_webhook_secret(request: CallerRequest, project: Text) -> WebhookSecretOut:
    """For maintainers. Webhooks signed with the old secret are rejected from now on."""
    member, instance = _load_project(request, project)
    return WebhookSecretOut(secret=services.renew_secret(member=member, project=instance))


@router.get(FORGE + "/webhooks", response=ReceivedWebhookPage, summary="List received webhooks")
def list_incoming(
    request: CallerRequest, project: Text, cursor: NumberCursor = None, limit: Limit = 50
) -> ReceivedWebhookPage:
    """Of the last 30 days, newest first. Webhooks without a valid signature are rejected and not
    listed."""
    rows = load_webhooks(load_connection(*_load_project(request, project)))
    page, following = cut_page(rows, after=cursor, limit=limit)
    return ReceivedWebhookPage(
        webhooks=[build_received_webhook_out(each) for each in page], next=following
    )


@router.get(
    FORGE + "/requests",
    response=BenchmarkRequestPage,
    summary="List benchmark requests of pull requests, newest first",
)
def list_benchmark_requests(
    request: CallerRequest,
    project: Text,
    state: RequestState | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> BenchmarkRequestPage:
    """`?state=waiting` lists requests from forks that wait for an approval."""
    rows = load_requests(load_connection(*_load_project(request, project)))
    if state:
        rows = rows.filter(state=state)
    page, following = cut_page(rows, after=cursor, limit=limit)
    out = [build_benchmark_request_out(each) for each in page]
    return BenchmarkRequestPage(requests=out, next=following)


@router.get(REQUEST, response=BenchmarkRequestOut, summary="Show a benchmark request")
def show_benchmark_request(request: CallerRequest, request_id: UUID) -> BenchmarkRequestOut:
    return build_benchmark_request_out(request_for(request.auth.member, request_id))


@router.post(
    REQUEST + "/approve", response=BenchmarkRequestOut, summary="Approve a benchmark of a fork"
)
def approve_benchmark_request(
    request: CallerRequest, request_id: UUID, payload: ApprovalIn
) -> BenchmarkRequestOut:
    """Its code then runs on your hosts. 409 if another commit was requested in the meantime, or no
    request waits."""
    member = request.auth.member
    services.approve(member=member, request_id=request_id, sha=payload.commit)
    wake_forges()
    return build_benchmark_request_out(request_for(member, request_id))


@router.post(
    REQUEST + "/decline", response=BenchmarkRequestOut, summary="Decline a benchmark of a fork"
)
def decline_benchmark_request(request: CallerRequest, request_id: UUID) -> BenchmarkRequestOut:
    member = request.auth.member
    services.decline(member=member, request_id=request_id)
    wake_forges()
    return build_benchmark_request_out(request_for(member, request_id))


def _load_project(request: CallerRequest, project: str) -> tuple[Member, Project]:
    member = request.auth.member
    return member, load_project(member, project)
