"""`Member`: a user acting for a team; every selector and service asks it for permission."""

from collections.abc import Hashable
from dataclasses import dataclass

from django.db.models import Q

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

    @property
    def scope(self) -> Hashable:
        """What the member sees, as a key of what is kept for all who see the same."""
        return self.team.pk

    def sees(self, project: str, *, team: str = "") -> Q:
        """Which rows the member may see. `project` is the way from a row to its project, such as
        `benchmark__project`; `team` the shorter one to its team, where there is one."""
        return Q(**{team or f"{project}__team": self.team})

    def sees_project(self, project: int, team: int) -> bool:
        """The same of a project at hand, by its key and that of its team."""
        return team == self.team.pk

    def may(self, role: str) -> bool:
        """Whether the member has at least `role`."""
        return _RANK[Role(self.role)] >= _RANK[Role(role)]

    def require(self, role: str, *, to: str) -> None:
        """Raises PermissionRefusedError unless the member has at least `role`."""
        if not self.may(role):
            raise PermissionRefusedError(
                f"{self.user.get_username()} is a {self.role} of {self.team.name}; "
                f"to {to}, ask an admin of the team for the role {role}"
            )


def member_of(membership: Membership) -> Member:
    return Member(user=membership.user, team=membership.team, role=membership.role)


def by_itself(team: Team) -> Member:
    """Pitwall acting for a team with nobody's request: its user is not stored."""
    return Member(user=User(username="Pitwall"), team=team, role=Role.MEMBER)
