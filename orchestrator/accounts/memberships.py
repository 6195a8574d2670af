"""Memberships: roles, removal and leaving. A team always keeps an owner."""

from django.db import connection, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken, Membership, Role, Team
from orchestrator.accounts.services import record_audit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError

#: Roles that only owners assign and remove.
HIGH = (Role.MAINTAINER, Role.OWNER)


def require_to_give(member: Member, *roles: str, to: str) -> None:
    """Raise unless the member may manage these roles.

    Maintainers manage viewers and members, owners manage all roles.
    """
    high = any(role in HIGH for role in roles)
    member.require(Role.OWNER if high else Role.MAINTAINER, to=to)


def check_role(role: str) -> None:
    if role not in Role.values:
        raise InvalidRequestError(f"the roles are {', '.join(Role.values)}", field="role")


@transaction.atomic
def change_role(*, member: Member, username: str, role: str) -> Membership:
    """Change the role of any member of the team, including the caller."""
    member.require(Role.MAINTAINER, to="change a member's role")
    membership = _lock_membership(member, username)
    check_role(role)
    require_to_give(member, membership.role, role, to=f"change the role of {username} to {role}")
    if membership.role != role:
        _require_other_owner(membership, role)
        Membership.objects.filter(pk=membership.pk).update(role=role)
        subject = f"{username}: {membership.role} to {role}"
        record_audit(member=member, action="member.role_changed", subject=subject)
        membership.role = role
    return membership


@transaction.atomic
def remove_member(*, member: Member, username: str) -> None:
    """Remove a member and revoke their tokens of this team; their other objects stay."""
    member.require(Role.MAINTAINER, to="remove a member from the team")
    membership = _lock_membership(member, username)
    require_to_give(member, membership.role, to=f"remove {username}, the team's {membership.role},")
    _end_membership(member, membership, "member.removed")


@transaction.atomic
def leave_team(*, member: Member) -> None:
    """Leave the team; not possible for the last owner."""
    _end_membership(member, _lock_membership(member, member.user.get_username()), "member.left")


@transaction.atomic
def remove_team(*, team: Team) -> None:
    """Remove a team with all its data, including its audit log.

    For commands on the server; no page does this. ProtectedError if the team has results.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('pitwall.removed_team', %s, true)", [str(team.pk)])
        team.delete()
        cursor.execute("SELECT set_config('pitwall.removed_team', '', true)")


def _lock_membership(member: Member, username: str) -> Membership:
    """Lock the team: if two owners leave at the same time, one must stay."""
    Team.objects.select_for_update().get(pk=member.team.pk)
    memberships = Membership.objects.select_related("user").filter(
        team=member.team, user__username=username
    )
    membership = memberships.first()
    if membership is None:
        raise NotFoundError(f"the team has no member {username}; reload the page")
    return membership


def _require_other_owner(target: Membership, role: str | None) -> None:
    others = Membership.objects.filter(team=target.team_id, role=Role.OWNER).exclude(pk=target.pk)
    if target.role == Role.OWNER and role != Role.OWNER and not others.exists():
        raise ConflictError(
            f"{target.user.get_username()} is the only owner of the team; "
            "appoint another owner first"
        )


def _end_membership(member: Member, target: Membership, action: str) -> None:
    _require_other_owner(target, None)
    tokens = ApiToken.objects.filter(team=target.team_id, user=target.user_id, revoked_at=None)
    tokens.update(revoked_at=utc_now())
    target.delete()
    record_audit(member=member, action=action, subject=target.user.get_username())
