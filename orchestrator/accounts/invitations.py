"""Invitations to a team: single-use secret links, valid for days."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import QuerySet

from orchestrator.accounts.mail_limits import reserve_mails
from orchestrator.accounts.members import Member, add_article
from orchestrator.accounts.memberships import check_role, require_to_give
from orchestrator.accounts.models import Invitation, Membership, Role, Team, User
from orchestrator.accounts.new_accounts import create_account
from orchestrator.accounts.services import record_audit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import (
    ConflictError,
    GoneError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.core.issued_secrets import Kind, hash_secret, new_secret

DAYS = 7
MOST_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvitation:
    """A new invitation; its secret is shown only once."""

    invitation: Invitation
    secret: str


def load_invitations(member: Member) -> QuerySet[Invitation]:
    """Return the open invitations of the team."""
    rows = Invitation.objects.filter(
        team=member.team, used_at=None, withdrawn_at=None, expires_at__gt=utc_now()
    )
    return rows.select_related("created_by").order_by("expires_at")


def load_open_invitation(member: Member, invitation_id: UUID) -> Invitation:
    invitation = load_invitations(member).filter(pk=invitation_id).first()
    if invitation is None:
        raise NotFoundError.build_for_team("open invitation")
    return invitation


def load_invitation(secret: str, *, lock: bool = False) -> Invitation:
    """Return the open invitation of a link; GoneError if it was open before, with the reason."""
    rows = Invitation.objects.select_related("team", "created_by")
    rows = rows.select_for_update(of=("self",)) if lock else rows
    invitation = rows.filter(digest=hash_secret(secret)).first()
    again = "ask the sender for a new one"
    if invitation is None:
        raise NotFoundError(f"there is no such invitation: check the link, or {again}")
    if invitation.used_at is not None:
        raise GoneError(f"this invitation was already used; {again}")
    if invitation.withdrawn_at is not None:
        raise GoneError(f"this invitation was withdrawn; {again}")
    if invitation.expires_at <= utc_now():
        raise GoneError(f"this invitation expired on {invitation.expires_at:%Y-%m-%d}; {again}")
    return invitation


@transaction.atomic
def create_invitation(
    *, member: Member, role: str, email: str = "", days: int = DAYS
) -> NewInvitation:
    """Create an invitation for one person; `email` is the recipient and does not restrict its use.

    PermissionRefusedError for a token: an account would outlive it.
    """
    if member.token is not None:
        raise PermissionRefusedError(
            "an API token creates no accounts; invite people on the page Members"
        )
    member.require(Role.MAINTAINER, to="invite a user")
    check_role(role)
    require_to_give(member, role, to=f"invite {add_article(role)}")
    if not 1 <= days <= MOST_DAYS:
        raise InvalidRequestError(f"an invitation lasts 1 to {MOST_DAYS} days", field="days")
    if email:
        _check_email(email)
        if settings.EMAIL_HOST:
            reserve_mails(member.team, 1)
    new = store_invitation(
        team=member.team, role=role, email=email, created_by=member.actor, days=days
    )
    record_audit(member=member, action="invitation.created", subject=f"{new.invitation}: {role}")
    return new


def store_invitation(
    *, team: Team, role: str, email: str = "", created_by: User | None = None, days: int = DAYS
) -> NewInvitation:
    """Create the row and its secret; the caller has checked the permission."""
    secret = new_secret(Kind.INVITATION)
    invitation = Invitation.objects.create(
        team=team,
        role=role,
        email=email,
        digest=secret.digest,
        created_by=created_by,
        expires_at=utc_now() + timedelta(days=days),
    )
    return NewInvitation(invitation=invitation, secret=secret.text)


@transaction.atomic
def withdraw_invitation(*, member: Member, invitation_id: UUID) -> None:
    member.require(Role.MAINTAINER, to="withdraw an invitation")
    invitation = load_invitations(member).select_for_update(of=("self",)).filter(pk=invitation_id)
    match = invitation.first()
    if match is None:
        raise NotFoundError.build_for_team("open invitation")
    require_to_give(member, match.role, to=f"withdraw the invitation of {add_article(match.role)}")
    Invitation.objects.filter(pk=match.pk).update(withdrawn_at=utc_now())
    record_audit(member=member, action="invitation.withdrawn", subject=match)


@transaction.atomic
def accept_invitation(*, user: User, secret: str) -> Member:
    """Add the user to the team as a member; ConflictError if they are one already."""
    invitation = load_invitation(secret, lock=True)
    team = invitation.team
    if Membership.objects.filter(team=team, user=user).exists():
        raise ConflictError(f"the user {user.get_username()} is already a member of {team.name}")
    Membership.objects.create(team=team, user=user, role=invitation.role)
    Invitation.objects.filter(pk=invitation.pk).update(used_at=utc_now(), used_by=user)
    user.known_memberships = None
    member = Member(user=user, team=team, role=invitation.role)
    record_audit(member=member, action="member.joined", subject=f"{user}: {invitation.role}")
    return member


@transaction.atomic
def accept_as_new_user(*, secret: str, username: str, password: str) -> Member:
    """Create an account and add it to the team; if either is invalid, do neither."""
    invitation = load_invitation(secret, lock=True)
    user = create_account(username=username, password=password, email=invitation.email)
    return accept_invitation(user=user, secret=secret)


def _check_email(email: str) -> None:
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidRequestError(f"{email} is not an e-mail address", field="email") from error
