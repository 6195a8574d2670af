"""Reads of users, teams and tokens."""

from django.db.models import QuerySet

from orchestrator.accounts.members import Member, member_of
from orchestrator.accounts.models import ApiToken, Membership, Role, User
from orchestrator.core.errors import (
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.core.ids import sha256_hex


def member_for_user(user: User, team_slug: str | None = None) -> Member:
    """The user as a member of the team named, or of their first team."""
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
    """The member that a bearer token stands for; NotFoundError for an unknown or revoked one."""
    token = (
        ApiToken.objects.select_related("team", "user")
        .filter(digest=sha256_hex(secret.encode()), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is None:
        raise NotFoundError("this API token is unknown or was revoked; make a new one in the UI")
    membership = Membership.objects.filter(team=token.team, user=token.user).first()
    if membership is None:
        raise NotFoundError("the owner of this API token has left the team")
    return Member(user=token.user, team=token.team, role=membership.role), token


def tokens_of(member: Member) -> QuerySet[ApiToken]:
    return member.team.api_tokens.select_related("user").filter(revoked_at=None).order_by("name")


def members_of(member: Member) -> QuerySet[Membership]:
    """Who is in the member's team, by user name."""
    return member.team.memberships.select_related("user").order_by("user__username")
