"""Schemas of the team: members, invitations, tokens, the audit log."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from ninja import Field, Schema

from orchestrator.accounts.models import ApiToken, AuditEntry, Invitation, Membership
from orchestrator.accounts.services import MOST_TOKEN_DAYS
from orchestrator.api.schemas.common import ShownOnce, Text
from orchestrator.retention.quota_use import TeamUse

RoleName = Literal["viewer", "member", "maintainer", "owner"]
ScopeName = Literal["read", "run", "results", "manage"]


class MemberOut(Schema):
    user: str
    role: RoleName
    last_login: datetime | None


class MemberPage(Schema):
    members: list[MemberOut]
    next: str | None


class RoleIn(Schema):
    role: RoleName


class InvitationOut(Schema):
    id: UUID
    role: RoleName
    email: str
    created_by: str | None
    created_at: datetime
    expires_at: datetime


class InvitationPage(Schema):
    invitations: list[InvitationOut]
    next: str | None


class TokenIn(Schema):
    """Without `days` it is valid until it is revoked. Without `project` it is for the whole
    team."""

    name: Text
    scopes: list[ScopeName] = Field(min_length=1)
    project: Text | None = None
    days: int | None = Field(None, ge=1, le=MOST_TOKEN_DAYS)


class TokenOut(Schema):
    id: UUID
    name: str
    prefix: str
    user: str
    scopes: list[ScopeName]
    project: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class TokenPage(Schema):
    tokens: list[TokenOut]
    next: str | None


class NewTokenOut(TokenOut):
    """`secret` is returned only once."""

    secret: ShownOnce


class HostsUseOut(Schema):
    used: int
    limit: int | None


class QueueUseOut(Schema):
    """Expected machine time of the jobs in the queue."""

    used_s: float
    limit_s: int | None


class StorageUseOut(Schema):
    """Raw output of trials and imported data, counted within the last minute."""

    used_bytes: int
    limit_bytes: int | None


class MirrorsUseOut(Schema):
    """Mirrors of the team's repositories on the server, as of the last fetch of each."""

    used_bytes: int
    limit_bytes: int | None


class QuotasOut(Schema):
    """Usage and quotas of the team; a quota is null if there is no limit. `own`: the quotas are set
    for this team. The administrator changes them."""

    own: bool
    hosts: HostsUseOut
    queue: QueueUseOut
    storage: StorageUseOut
    mirrors: MirrorsUseOut


class AuditEntryOut(Schema):
    """`actor` is null for automatic actions; `token` is the token used, if any."""

    id: int
    at: datetime
    actor: str | None
    token: str | None
    action: str
    subject: str


class AuditPage(Schema):
    entries: list[AuditEntryOut]
    next: int | None = Field(description="The `cursor` of the next page; null on the last.")


def build_member_out(membership: Membership) -> MemberOut:
    user = membership.user
    return MemberOut(
        user=user.get_username(), role=membership.role, last_login=user.last_login  # type: ignore[arg-type]
    )  # fmt: skip


def build_invitation_out(invitation: Invitation) -> InvitationOut:
    return InvitationOut(**_build_invitation_fields(invitation))


def build_token_out(token: ApiToken) -> TokenOut:
    return TokenOut(**_build_token_fields(token))


def build_new_token_out(token: ApiToken, *, secret: str) -> NewTokenOut:
    return NewTokenOut(**_build_token_fields(token), secret=secret)


def build_quotas_out(use: TeamUse) -> QuotasOut:
    quotas = use.quotas
    return QuotasOut(
        own=quotas.own,
        hosts=HostsUseOut(used=use.hosts, limit=quotas.hosts),
        queue=QueueUseOut(used_s=use.queued_s, limit_s=quotas.queued_s),
        storage=StorageUseOut(used_bytes=use.storage_bytes, limit_bytes=quotas.storage_bytes),
        mirrors=MirrorsUseOut(used_bytes=use.mirrors_bytes, limit_bytes=quotas.mirrors_bytes),
    )


def build_audit_entry_out(entry: AuditEntry) -> AuditEntryOut:
    return AuditEntryOut(
        id=entry.pk,
        at=entry.at,
        actor=entry.actor_name or None,
        token=entry.token or None,
        action=entry.action,
        subject=entry.subject,
    )


def _build_invitation_fields(invitation: Invitation) -> dict[str, Any]:
    by = invitation.created_by
    named = ("id", "role", "email", "created_at", "expires_at")
    fields = {name: getattr(invitation, name) for name in named}
    return {**fields, "created_by": by.get_username() if by else None}


def _build_token_fields(token: ApiToken) -> dict[str, Any]:
    named = ("id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at")
    fields = {name: getattr(token, name) for name in named}
    project = token.project.slug if token.project else None
    return {**fields, "user": token.user.get_username(), "project": project}
