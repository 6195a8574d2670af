"""Writes of users, teams, tokens and the audit log."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from orchestrator.accounts.members import Member, member_of
from orchestrator.accounts.models import ApiToken, AuditEntry, Membership, Role, Team, User
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.ids import new_secret, sha256_hex

_USE_RESOLUTION = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token just made; its secret is shown once and never again."""

    token: ApiToken
    secret: str


def record_audit(*, member: Member, action: str, subject: object) -> None:
    """Adds a line to the team's audit log; call it inside the transaction of the write itself."""
    AuditEntry.objects.create(
        team=member.team, actor=member.actor, action=action, subject=str(subject)[:200]
    )


def record_system_audit(*, team: Team, action: str, subject: object) -> None:
    """The same for what Pitwall did by itself: the line has no actor."""
    AuditEntry.objects.create(team=team, actor=None, action=action, subject=str(subject)[:200])


def record_own_audit(*, user: User, action: str) -> None:
    """What users do to their own account stands in the audit logs of all their teams."""
    for membership in user.memberships.select_related("team", "user"):
        record_audit(member=member_of(membership), action=action, subject=user.get_username())


@transaction.atomic
def create_team(*, slug: str, name: str) -> Team:
    team, _ = Team.objects.get_or_create(slug=slug, defaults={"name": name})
    return team


@transaction.atomic
def create_user(*, username: str, password: str, team: Team, role: str = Role.ADMIN) -> User:
    """A new user as a member of `team`; InvalidRequestError where the name is taken."""
    if User.objects.filter(username=username).exists():
        raise InvalidRequestError(f"the user name {username} is taken", field="username")
    user = User.objects.create_user(username=username, password=password)
    Membership.objects.create(team=team, user=user, role=role)
    return user


@transaction.atomic
def create_token(*, member: Member, name: str) -> NewToken:
    member.require(Role.MEMBER, to="make an API token")
    if not name.strip():
        raise InvalidRequestError("give the token a name that tells what uses it", field="name")
    secret = new_secret("pw")
    token = ApiToken.objects.create(
        team=member.team,
        user=member.user,
        name=name.strip()[:100],
        prefix=secret[:8],
        digest=sha256_hex(secret.encode()),
    )
    record_audit(member=member, action="token.created", subject=token)
    return NewToken(token=token, secret=secret)


@transaction.atomic
def revoke_token(*, member: Member, token_id: UUID) -> None:
    member.require(Role.MEMBER, to="revoke an API token")
    tokens = ApiToken.objects.filter(team=member.team, pk=token_id, revoked_at=None)
    if not tokens.update(revoked_at=utc_now()):
        raise NotFoundError("there is no such API token in this team")
    record_audit(member=member, action="token.revoked", subject=token_id)


def note_token_use(*, token: ApiToken) -> None:
    """Remembers the use of a token, to the minute: a busy CI costs no write a request."""
    now = utc_now()
    if token.last_used_at and now - token.last_used_at < _USE_RESOLUTION:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _USE_RESOLUTION)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
