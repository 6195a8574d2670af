"""Reads of users, teams and tokens."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from orchestrator.accounts.members import Member, build_member
from orchestrator.accounts.models import ApiToken, Membership, Role, Team, User
from orchestrator.core.errors import (
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.core.issued_secrets import hash_secret

#: The models in a row of a token or of a user in a session, in this order.
_OF_TOKEN: tuple[Any, ...] = (ApiToken, User, Team)
_OF_SESSION: tuple[Any, ...] = (User, Team, Membership)


def _format_columns(tables: Sequence[str], models: Sequence[Any]) -> str:
    pairs = zip(tables, models, strict=True)
    return ", ".join(
        f"{table}.{field.column}" for table, model in pairs for field in model._meta.concrete_fields
    )


_MEMBER_OF_TOKEN = f"""
SELECT {_format_columns(("token", "owner", "team"), _OF_TOKEN)}, membership.role, project.slug
FROM accounts_apitoken token
JOIN accounts_user owner ON owner.id = token.user_id
JOIN accounts_team team ON team.id = token.team_id
LEFT JOIN accounts_membership membership
    ON membership.team_id = team.id AND membership.user_id = owner.id
LEFT JOIN benchmarks_project project ON project.id = token.project_id
WHERE token.digest = %s AND token.revoked_at IS NULL AND owner.is_active
"""
_USER_OF_SESSION = f"""
SELECT {_format_columns(("owner", "team", "membership"), _OF_SESSION)}
FROM accounts_user owner
LEFT JOIN accounts_membership membership ON membership.user_id = owner.id
LEFT JOIN accounts_team team ON team.id = membership.team_id
WHERE owner.id = %s ORDER BY team.name, team.id
"""


def load_session_user(user_id: object) -> User | None:
    """Return the user of a session with their teams by name: every page needs them."""
    with connection.cursor() as cursor:
        cursor.execute(_USER_OF_SESSION, [str(user_id)])
        rows = cursor.fetchall()
    if not rows:
        return None
    user: User | None = None
    memberships = []
    for row in rows:
        parts = iter(row)
        same, team, membership = (_build_instance(model, parts) for model in _OF_SESSION)
        user = user or same
        if membership.pk is not None:
            membership.user, membership.team = user, team
            memberships.append(membership)
    assert user is not None, "there is at least one row"
    user.known_memberships = tuple(memberships)
    return user


def load_users_by_email(email: str) -> list[User]:
    """Return users with this address, ignoring case; at most two, since two are ambiguous."""
    return list(User.objects.filter(email__iexact=email).order_by("pk")[:2]) if email else []


def load_team(slug: str) -> Team:
    """Return a team; NotFoundError lists all teams, so only commands on the server may use it."""
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        known = ", ".join(Team.objects.order_by("slug").values_list("slug", flat=True))
        raise NotFoundError(f"there is no team {slug}; existing teams: {known or 'none'}")
    return team


def load_memberships(user: User) -> tuple[Membership, ...]:
    """Return the user's memberships by the name of the team."""
    if user.known_memberships is None:
        memberships = Membership.objects.select_related("team", "user").filter(user=user)
        user.known_memberships = tuple(memberships.order_by("team__name", "team"))
    return user.known_memberships


def load_member(user: User, team_slug: str | None = None, *, chosen: str = "") -> Member:
    """Return the user as a member of the named team, else of the `chosen` team, else of their
    first.

    The chosen team is used only if they are still a member of it.
    """
    memberships = load_memberships(user)
    if team_slug:
        memberships = tuple(each for each in memberships if each.team.slug == team_slug)
    if not memberships:
        raise PermissionRefusedError(
            f"the user {user.get_username()} is not a member of this team; "
            "ask a maintainer or owner of the team for an invitation"
        )
    wanted = (each for each in memberships if each.team.slug == chosen)
    return build_member(next(wanted, memberships[0]))


def load_first_owner(team: str | None) -> Member:
    """Return the member for a command on the server, which has the permissions of an owner.

    InvalidRequestError if there is none, or if there are several teams and none is named.
    """
    owners = Membership.objects.select_related("team", "user").filter(role=Role.OWNER)
    candidates = owners.filter(team__slug=team) if team else owners
    teams = sorted({each.team.slug for each in candidates})
    if not teams:
        raise InvalidRequestError(
            f"there is no team {team}" if team else "no team has an owner yet"
        )
    if len(teams) > 1:
        raise InvalidRequestError(
            f"there are several teams: choose one of {', '.join(teams)} with --team"
        )
    return build_member(candidates.order_by("pk")[0])


def load_token_member(secret: str) -> Member:
    """Return the member of a bearer token; NotFoundError if it is unknown, expired or revoked.

    One query in SQL: every request of the API begins with it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_MEMBER_OF_TOKEN, [hash_secret(secret)])
        row = cursor.fetchone()
    if row is None:
        raise NotFoundError(
            "this API token is unknown or was revoked; create one in the team's settings"
        )
    *values, role, project = row
    if role is None:
        raise NotFoundError("the owner of this API token has left the team")
    parts = iter(values)
    token, user, team = (_build_instance(model, parts) for model in _OF_TOKEN)
    if token.has_expired:
        raise NotFoundError(
            f"this API token expired on {token.expires_at:%Y-%m-%d}; create one in the team's "
            "settings"
        )
    token.user, token.team, token.project_slug = user, team, project
    return Member(user=user, team=team, role=role, token=token)


def _build_instance(model: Any, values: Iterator[Any]) -> Any:
    names = [field.attname for field in model._meta.concrete_fields]
    return model.from_db("default", names, list(islice(values, len(names))))


def load_tokens(member: Member) -> QuerySet[ApiToken]:
    """Return the tokens of the team that were not revoked, including expired ones."""
    tokens = member.team.api_tokens.select_related("user", "project")
    return tokens.filter(revoked_at=None).order_by("name", "pk")


def load_members(member: Member) -> QuerySet[Membership]:
    """Return the members of the member's team, by username."""
    return member.team.memberships.select_related("user").order_by("user__username")


def load_token(member: Member, token_id: UUID) -> ApiToken:
    token = load_tokens(member).filter(pk=token_id).first()
    if token is None:
        raise NotFoundError.build_for_team("API token")
    return token


def count_derived_tokens(token: ApiToken) -> int:
    """Count the valid tokens that were created with this one, directly or indirectly."""
    derived, newest = set[UUID](), {token.pk}
    while newest:
        children = ApiToken.objects.filter(parent__in=newest, revoked_at=None)
        newest = set(children.values_list("pk", flat=True)) - derived
        derived |= newest
    return len(derived)


def load_membership(member: Member, username: str) -> Membership:
    membership = load_members(member).filter(user__username=username).first()
    if membership is None:
        raise NotFoundError(f"the team has no member {username}; reload the page")
    return membership
