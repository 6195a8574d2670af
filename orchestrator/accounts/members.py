"""`Member`: a user acting for a team; every selector and service checks its permissions."""

from collections.abc import Hashable
from dataclasses import dataclass

from django.db.models import Q

from orchestrator.accounts.models import ApiToken, Membership, Role, Scope, Team, User
from orchestrator.core.errors import PermissionRefusedError

_RANK = {Role.VIEWER: 0, Role.MEMBER: 1, Role.MAINTAINER: 2, Role.OWNER: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A user with their role in one team; `token` is set if a client acts for them."""

    user: User
    team: Team
    role: str
    token: ApiToken | None = None

    @property
    def actor(self) -> User | None:
        """Return the user for the audit log; None for automatic actions of Pitwall."""
        return None if self.user.pk is None else self.user

    @property
    def project(self) -> int | None:
        """Return the only project of the token; None for the whole team."""
        return None if self.token is None else self.token.project_id

    @property
    def sight(self) -> Hashable:
        """Return a cache key that is equal for members who see the same data."""
        return (self.team.pk, self.project)

    def sees(self, project: str, *, team: str = "") -> Q:
        """Return a filter for the rows that the member may see: those of deleted objects are not.

        `project` is the path from a row to its project, such as `benchmark__project`; `team` is a
        shorter path to its team, if there is one.
        """
        of_team = Q(**{team or f"{project}__team": self.team}) & build_live_condition(project)
        return of_team if self.project is None else of_team & Q(**{project: self.project})

    def sees_project(self, project: int, team: int) -> bool:
        """Return whether the member may see a project, given its key and that of its team."""
        return team == self.team.pk and self.project in (None, project)

    def has(self, role: str) -> bool:
        """Whether the member has at least `role`."""
        return _RANK[Role(self.role)] >= _RANK[Role(role)]

    def require(self, role: str, *, to: str) -> None:
        """Raise PermissionRefusedError unless the member has at least `role`."""
        if not self.has(role):
            raise PermissionRefusedError(
                f"the user {self.user.get_username()} is {add_article(self.role)} of "
                f"{self.team.name}; to {to}, ask {name_granting_role(role)} of the team for the "
                f"role {role}"
            )

    def require_scope(self, scope: str, *, to: str) -> None:
        """Raise PermissionRefusedError if the token does not have `scope`."""
        if self.token is not None and scope not in self.token.scopes:
            raise PermissionRefusedError(
                f"the token {self.token} may not {to}: it lacks the scope {Scope(scope).value}; "
                "create another token with it in the team's settings"
            )

    def require_whole_team(self, *, to: str) -> None:
        """Raise PermissionRefusedError if the token is limited to one project."""
        if self.token is not None and self.token.project_id is not None:
            raise PermissionRefusedError(
                f"the token {self.token} is for the project {self.token.project_slug} only; "
                f"to {to}, use one that is for all projects of the team"
            )


def build_live_condition(project: str) -> Q:
    """Return a filter for rows that were not deleted with their project or benchmark.

    `project` as for `Member.sees`. The benchmarks of a deleted project are deleted themselves.
    """
    if project == "pk":
        return Q(deleted_at=None)
    owner = project.removesuffix("__project") if "benchmark__project" in project else project
    return Q(**{f"{owner}__deleted_at": None})


def add_article(role: str) -> str:
    """Return the role with its article: `a viewer`, `an owner`."""
    return f"an {role}" if role[0] in "aeiou" else f"a {role}"


def name_granting_role(role: str) -> str:
    """Return who may assign this role."""
    above = role in (Role.MAINTAINER, Role.OWNER)
    return "an owner" if above else "a maintainer or owner"


def build_member(membership: Membership) -> Member:
    return Member(user=membership.user, team=membership.team, role=membership.role)


def build_system_member(team: Team) -> Member:
    """Return Pitwall as a member, for automatic actions in a team: its user is not stored."""
    return Member(user=User(username="Pitwall"), team=team, role=Role.MEMBER)
