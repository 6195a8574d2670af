"""`Member`: a user acting for a team; every selector and service asks it for permission."""

from dataclasses import dataclass

from orchestrator.accounts.models import Membership, Role, Team, User
from orchestrator.core.errors import PermissionRefusedError

_RANK = {Role.VIEWER: 0, Role.MEMBER: 1, Role.ADMIN: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A user in the role that they have in one team."""

    user: User
    team: Team
    role: str

    @property
    def actor(self) -> User | None:
        """Who is noted as having done it; None for what Pitwall does by itself."""
        return None if self.user.pk is None else self.user

    def require(self, role: str, *, to: str) -> None:
        """Raises PermissionRefusedError unless the member has at least `role`."""
        if _RANK[Role(self.role)] < _RANK[Role(role)]:
            raise PermissionRefusedError(
                f"{self.user.get_username()} is a {self.role} of {self.team.name}; "
                f"to {to}, ask an admin of the team for the role {role}"
            )


def member_of(membership: Membership) -> Member:
    return Member(user=membership.user, team=membership.team, role=membership.role)


def by_itself(team: Team) -> Member:
    """Pitwall acting for a team with nobody's request: its user is not stored."""
    return Member(user=User(username="Pitwall"), team=team, role=Role.MEMBER)
