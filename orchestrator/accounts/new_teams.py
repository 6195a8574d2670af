"""Creation of teams by the operator, with an owner or an invitation for one."""

from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import transaction

from orchestrator.accounts.invitations import NewInvitation, store_invitation
from orchestrator.accounts.models import Membership, Role, Team, User
from orchestrator.accounts.services import record_system_audit
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedTeam:
    """A new team; `invitation` is for its first owner, if none was named."""

    team: Team
    invitation: NewInvitation | None


@transaction.atomic
def start_team(*, slug: str, name: str, owner: str = "") -> StartedTeam:
    """Create a team; `owner`: a username; without one, create an invitation for the first owner."""
    team = Team(slug=slug, name=name.strip() or slug)
    if Team.objects.filter(slug=slug).exists():
        raise ConflictError(f"there is already a team {slug}; choose another name")
    try:
        team.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequestError(f"{field}: {' '.join(messages)}", field=field) from error
    team.save()
    record_system_audit(team=team, action="team.created", subject=team.name)
    if not owner:
        new = store_invitation(team=team, role=Role.OWNER)
        subject = f"{new.invitation}: {Role.OWNER}"
        record_system_audit(team=team, action="invitation.created", subject=subject)
        return StartedTeam(team=team, invitation=new)
    user = User.objects.filter(username=owner).first()
    if user is None:
        raise NotFoundError(
            f"there is no user {owner}; without an owner, the command prints an invitation, with "
            "which the first owner creates an account"
        )
    Membership.objects.create(team=team, user=user, role=Role.OWNER)
    record_system_audit(team=team, action="member.joined", subject=f"{owner}: {Role.OWNER}")
    return StartedTeam(team=team, invitation=None)
