"""Writes of users, teams, tokens and the audit log."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from orchestrator.accounts.members import Member, build_member
from orchestrator.accounts.models import (
    ApiToken,
    AuditEntry,
    Membership,
    Role,
    Scope,
    Team,
    User,
)
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.issued_secrets import Kind, new_secret

#: A longer lifetime is practically without limit.
MOST_TOKEN_DAYS = 3_660
_USE_RESOLUTION = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A new token; its secret is shown only once."""

    token: ApiToken
    secret: str


def record_audit(*, member: Member, action: str, subject: object) -> None:
    """Add an entry to the team's audit log; call it inside the transaction of the write itself."""
    AuditEntry.objects.create(
        team=member.team,
        actor=member.actor,
        actor_name=member.user.get_username() if member.actor else "",
        token=str(member.token)[:120] if member.token else "",
        action=action,
        subject=str(subject)[:200],
    )


def record_system_audit(*, team: Team, action: str, subject: object) -> None:
    """Add an entry for an automatic action: it has no actor."""
    AuditEntry.objects.create(team=team, actor=None, action=action, subject=str(subject)[:200])


def record_own_audit(*, user: User, action: str, subject: str = "") -> None:
    """Record a user's change of their own account in the audit logs of all their teams."""
    for membership in user.memberships.select_related("team", "user"):
        audit_subject = subject or user.get_username()
        record_audit(member=build_member(membership), action=action, subject=audit_subject)


@transaction.atomic
def create_team(*, slug: str, name: str) -> Team:
    team, _ = Team.objects.get_or_create(slug=slug, defaults={"name": name})
    return team


@transaction.atomic
def create_user(*, username: str, password: str, team: Team, role: str = Role.OWNER) -> User:
    """Create a user as a member of `team`; InvalidRequestError if the name is taken."""
    if User.objects.filter(username=username).exists():
        problem = f"the user name {username} is taken; choose another"
        raise InvalidRequestError(problem, field="username")
    user = User.objects.create_user(username=username, password=password)
    Membership.objects.create(team=team, user=user, role=role)
    return user


@transaction.atomic
def create_token(
    *,
    member: Member,
    name: str,
    scopes: Collection[str] | None = None,
    project: int | None = None,
    days: int | None = None,
) -> NewToken:
    """Create a token of the member, with all scopes by default.

    `project` is the key of a project of the team, `days` the lifetime. A token cannot create one
    with more permissions or a longer lifetime than its own.
    """
    member.require(Role.MEMBER, to="create an API token")
    wanted = [each for each in Scope.values if scopes is None or each in scopes]
    _check_token(name, wanted, scopes, days)
    for each in wanted:
        member.require_scope(each, to=f"create one with the scope {each}")
    if project is None:
        member.require_whole_team(to="create one for all projects")
    parent = _find_parent_token(member)
    ends = [utc_now() + timedelta(days=days)] if days is not None else []
    ends += [parent.expires_at] if parent is not None and parent.expires_at is not None else []
    secret = new_secret(Kind.API_TOKEN)
    token = ApiToken.objects.create(
        team=member.team,
        user=member.user,
        name=name.strip()[:100],
        prefix=secret.beginning,
        digest=secret.digest,
        scopes=wanted,
        project_id=project,
        parent=parent,
        expires_at=min(ends, default=None),
    )
    record_audit(member=member, action="token.created", subject=f"{token}: {', '.join(wanted)}")
    return NewToken(token=token, secret=secret.text)


def _find_parent_token(member: Member) -> ApiToken | None:
    """Return the member's token, locked: it cannot be revoked before the new one exists."""
    if member.token is None:
        return None
    tokens = ApiToken.objects.select_for_update().filter(pk=member.token.pk, revoked_at=None)
    parent = tokens.first()
    if parent is None:
        raise NotFoundError("this API token was just revoked; reload the page")
    return parent


def _check_token(
    name: str, wanted: list[str], scopes: Collection[str] | None, days: int | None
) -> None:
    if not name.strip():
        problem = "enter a name for the token: the program that uses it"
        raise InvalidRequestError(problem, field="name")
    if not wanted or len(wanted) < len(set(scopes or wanted)):
        known = ", ".join(Scope.values)
        raise InvalidRequestError(f"choose one or more scopes of {known}", field="scopes")
    if days is not None and not 1 <= days <= MOST_TOKEN_DAYS:
        raise InvalidRequestError(
            f"a token is valid for 1 to {MOST_TOKEN_DAYS} days, or until it is revoked",
            field="days",
        )


@transaction.atomic
def revoke_token(*, member: Member, token_id: UUID) -> None:
    """Revoke a token of the member; those of others need a maintainer.

    Tokens that were created with it, directly or indirectly, are revoked too.
    """
    member.require(Role.MEMBER, to="revoke an API token")
    tokens = ApiToken.objects.filter(team=member.team, pk=token_id, revoked_at=None)
    token = tokens.select_for_update().first()
    if token is None:
        raise NotFoundError.build_for_team("API token")
    if token.user_id != member.user.pk:
        member.require(Role.MAINTAINER, to="revoke the API token of another member")
    revoked = [token]
    while revoked:
        ApiToken.objects.filter(pk__in=[each.pk for each in revoked]).update(revoked_at=utc_now())
        for each in revoked:
            record_audit(member=member, action="token.revoked", subject=each)
        children = ApiToken.objects.filter(parent__in=revoked, revoked_at=None)
        revoked = list(children.select_for_update().order_by("created_at"))


def record_token_use(*, token: ApiToken) -> None:
    """Record the use of a token, at most once a minute: not every request costs a write."""
    now = utc_now()
    if token.last_used_at and now - token.last_used_at < _USE_RESOLUTION:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _USE_RESOLUTION)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
