"""The team: members, invitations, tokens, quotas and the audit log."""

from http import HTTPStatus
from typing import Annotated, cast
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Schema
from ninja.responses import Status

from orchestrator.accounts import audit, invitations, memberships, services
from orchestrator.accounts.selectors import load_members, load_tokens
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, NumberCursor, cut_page
from orchestrator.api.schemas import team as shapes
from orchestrator.api.schemas.common import Day
from orchestrator.benchmarks.selectors import load_project
from orchestrator.core.storable_text import StorableText
from orchestrator.retention.quota_use import load_team_use

router = Router(tags=["team"])

Part = Annotated[StorableText, Query(max_length=200)]


class AuditQuery(Schema):
    """`action` is an action such as `host.added`, or its first part such as `host`. `text` is part
    of the subject. Both days are included, in UTC."""

    actor: Part = ""
    action: Part = ""
    text: Part = ""
    since: Day | None = None
    until: Day | None = None

    def build_filter(self) -> audit.AuditFilter:
        return audit.AuditFilter(**self.model_dump())


@router.get("/members", response=shapes.MemberPage, summary="List the team's members, newest first")
def list_members(
    request: CallerRequest, cursor: NumberCursor = None, limit: Limit = 50
) -> shapes.MemberPage:
    page, following = cut_page(load_members(request.auth.member), after=cursor, limit=limit)
    return shapes.MemberPage(
        members=[shapes.build_member_out(each) for each in page], next=following
    )


@router.put("/members/{str:username}", response=shapes.MemberOut, summary="Change a member's role")
def change_member(
    request: CallerRequest, username: str, payload: shapes.RoleIn
) -> shapes.MemberOut:
    """Owners assign and remove the roles maintainer and owner. 409 for the last owner."""
    member = request.auth.member
    return shapes.build_member_out(
        memberships.change_role(member=member, username=username, role=payload.role)
    )


@router.delete(
    "/members/{str:username}", response={204: None}, summary="Remove a member from the team"
)
def remove_member(request: CallerRequest, username: str) -> Status[None]:
    """Revokes their tokens; their runs and other objects stay. 409 for the last owner."""
    memberships.remove_member(member=request.auth.member, username=username)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get(
    "/invitations", response=shapes.InvitationPage, summary="List open invitations, newest first"
)
def list_invitations(
    request: CallerRequest, cursor: Cursor = None, limit: Limit = 50
) -> shapes.InvitationPage:
    """A user creates invitations on the page Members: a token cannot create accounts."""
    rows = invitations.load_invitations(request.auth.member)
    page, following = cut_page(rows, after=cursor, limit=limit)
    entries = [shapes.build_invitation_out(each) for each in page]
    return shapes.InvitationPage(invitations=entries, next=following)


@router.delete(
    "/invitations/{uuid:invitation_id}", response={204: None}, summary="Withdraw an invitation"
)
def withdraw_invitation(request: CallerRequest, invitation_id: UUID) -> Status[None]:
    invitations.withdraw_invitation(member=request.auth.member, invitation_id=invitation_id)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get("/tokens", response=shapes.TokenPage, summary="List API tokens, newest first")
def list_tokens(
    request: CallerRequest, cursor: Cursor = None, limit: Limit = 50
) -> shapes.TokenPage:
    """Revoked tokens are not listed."""
    page, following = cut_page(load_tokens(request.auth.member), after=cursor, limit=limit)
    return shapes.TokenPage(tokens=[shapes.build_token_out(each) for each in page], next=following)


@router.post("/tokens", response={201: shapes.NewTokenOut}, summary="Create an API token")
def create_token(request: CallerRequest, payload: shapes.TokenIn) -> Status[shapes.NewTokenOut]:
    """For the same user, with scopes that the token of the request has too."""
    member = request.auth.member
    project = load_project(member, payload.project) if payload.project else None
    new = services.create_token(
        member=member,
        name=payload.name,
        scopes=payload.scopes,
        project=project.pk if project else None,
        days=payload.days,
    )
    return Status(HTTPStatus.CREATED, shapes.build_new_token_out(new.token, secret=new.secret))


@router.delete("/tokens/{uuid:token_id}", response={204: None}, summary="Revoke an API token")
def revoke_token(request: CallerRequest, token_id: UUID) -> Status[None]:
    """Your own tokens; maintainers can also revoke those of others."""
    services.revoke_token(member=request.auth.member, token_id=token_id)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get("/quotas", response=shapes.QuotasOut, summary="Show the usage and quotas of the team")
def show_quotas(request: CallerRequest) -> shapes.QuotasOut:
    """Beyond a quota, new hosts and runs are refused with 409."""
    return shapes.build_quotas_out(load_team_use(request.auth.member.team))


@router.get("/audit", response=shapes.AuditPage, summary="Read the audit log, newest first")
def list_audit(
    request: CallerRequest, query: Query[AuditQuery], cursor: NumberCursor = None, limit: Limit = 50
) -> shapes.AuditPage:
    rows = audit.load_audit_entries(request.auth.member, query.build_filter()).order_by("-pk")
    if cursor is not None:
        rows = rows.filter(pk__lt=cursor)
    entries = list(rows[: limit + 1])
    following = entries[limit - 1].pk if len(entries) > limit else None
    return shapes.AuditPage(
        entries=[shapes.build_audit_entry_out(each) for each in entries[:limit]], next=following
    )


@router.get(
    "/audit/csv",
    summary="Read the whole audit log as CSV",
    openapi_extra={"responses": {200: {"description": "A file", "content": {"text/csv": {}}}}},
)
def export_audit_csv(request: CallerRequest, query: Query[AuditQuery]) -> HttpResponse:
    return _build_file_response(request, query, audit.as_csv, "text/csv")


@router.get(
    "/audit/json-lines",
    summary="Read the whole audit log as JSON lines",
    openapi_extra={
        "responses": {200: {"description": "A file", "content": {"application/jsonl": {}}}}
    },
)
def export_audit_json_lines(request: CallerRequest, query: Query[AuditQuery]) -> HttpResponse:
    return _build_file_response(request, query, audit.as_json_lines, "application/jsonl")


def _build_file_response(
    request: CallerRequest, query: AuditQuery, write: audit.Writer, media: str
) -> HttpResponse:
    rows = audit.load_audit_entries(request.auth.member, query.build_filter())
    answer = StreamingHttpResponse(write(rows), content_type=f"{media}; charset=utf-8")
    return cast(HttpResponse, answer)
