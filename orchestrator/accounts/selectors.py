"""Reads of users, teams and tokens."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from orchestrator.accounts.members import Member, member_of
from orchestrator.accounts.models import ApiToken, Membership, Role, Team, User
from orchestrator.core.errors import (
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.core.ids import sha256_hex

#: What the rows of tokens and of users in sessions are made of, in this order.
_OF_TOKEN: tuple[Any, ...] = (ApiToken, User, Team)
_OF_SESSION: tuple[Any, ...] = (User, Team, Membership)


def _columns(tables: Sequence[str], models: Sequence[Any]) -> str:
    pairs = zip(tables, models, strict=True)
    return ", ".join(
        f"{table}.{field.column}" for table, model in pairs for field in model._meta.concrete_fields
    )


_MEMBER_OF_TOKEN = f"""
SELECT {_columns(("token", "owner", "team"), _OF_TOKEN)}, membership.role
FROM accounts_apitoken token
JOIN accounts_user owner ON owner.id = token.user_id
JOIN accounts_team team ON team.id = token.team_id
LEFT JOIN accounts_membership membership
    ON membership.team_id = team.id AND membership.user_id = owner.id
WHERE token.digest = %s AND token.revoked_at IS NULL AND owner.is_active
"""
_USER_OF_SESSION = f"""
SELECT {_columns(("owner", "team", "membership"), _OF_SESSION)}
FROM accounts_user owner
LEFT JOIN accounts_membership membership ON membership.user_id = owner.id
LEFT JOIN accounts_team team ON team.id = membership.team_id
WHERE owner.id = %s ORDER BY team.name LIMIT 1
"""


def signed_in_user(user_id: object) -> User | None:
    """The user of a session, together with their first team: every page needs both."""
    with connection.cursor() as cursor:
        cursor.execute(_USER_OF_SESSION, [str(user_id)])
        row = cursor.fetchone()
    if row is None:
        return None
    parts = iter(row)
    user, team, membership = (_row(model, parts) for model in _OF_SESSION)
    if membership.pk is not None:
        membership.user, membership.team = user, team
        user.first_membership = membership
    found: User = user
    return found


def users_with_email(email: str) -> list[User]:
    """Who has this address, in whatever case; two are as bad as more."""
    return list(User.objects.filter(email__iexact=email).order_by("pk")[:2]) if email else []


def member_for_user(user: User, team_slug: str | None = None) -> Member:
    """The user as a member of the team named, or of their first team."""
    if user.first_membership is not None and not team_slug:
        return member_of(user.first_membership)
    memberships = Membership.objects.select_related("team", "user").filter(user=user)
    if team_slug:
        memberships = memberships.filter(team__slug=team_slug)
    membership = memberships.order_by("team__name").first()
    if membership is None:
        raise PermissionRefusedError(
            f"{user.get_username()} belongs to no such team; ask an admin of the team to add you"
        )
    return member_of(membership)


def first_admin(team: str | None) -> Member:
    """Who a command of this machine acts for: it may do what the team's admins may.

    InvalidRequestError where there is none, or none is named of several teams.
    """
    admins = Membership.objects.select_related("team", "user").filter(role=Role.ADMIN)
    found = admins.filter(team__slug=team) if team else admins
    teams = sorted({each.team.slug for each in found})
    if not teams:
        raise InvalidRequestError(
            f"there is no team {team}" if team else "no team has an admin yet"
        )
    if len(teams) > 1:
        raise InvalidRequestError(
            f"there are several teams: choose one of {', '.join(teams)} with --team"
        )
    return member_of(found.order_by("pk")[0])


def member_for_token(secret: str) -> tuple[Member, ApiToken]:
    """The member that a bearer token stands for; NotFoundError for an unknown or revoked one.

    One query, written by hand: the API asks it before everything that it does.
    """
    with connection.cursor() as cursor:
        cursor.execute(_MEMBER_OF_TOKEN, [sha256_hex(secret.encode())])
        row = cursor.fetchone()
    if row is None:
        raise NotFoundError("this API token is unknown or was revoked; make a new one in the UI")
    if row[-1] is None:
        raise NotFoundError("the owner of this API token has left the team")
    parts = iter(row)
    token, user, team = (_row(model, parts) for model in _OF_TOKEN)
    token.user, token.team = user, team
    return Member(user=user, team=team, role=row[-1]), token


def _row(model: Any, values: Iterator[Any]) -> Any:
    names = [field.attname for field in model._meta.concrete_fields]
    return model.from_db("default", names, list(islice(values, len(names))))


def tokens_of(member: Member) -> QuerySet[ApiToken]:
    return member.team.api_tokens.select_related("user").filter(revoked_at=None).order_by("name")


def members_of(member: Member) -> QuerySet[Membership]:
    """Who is in the member's team, by user name."""
    return member.team.memberships.select_related("user").order_by("user__username")
