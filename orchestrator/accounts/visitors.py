"""`Visitor`: whoever looks without being a member, at one project and at nothing else.

A visitor has no team to filter by: selectors that ask for it refuse, so that what nobody thought
of stays closed. Those that visitors may use filter by `member.sees(…)`.
"""

from collections.abc import Hashable, Mapping

from django.db.models import Q

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Team, User
from orchestrator.core.errors import NotFoundError, PermissionRefusedError

ROLE = "visitor"


class Visitor(Member):
    """Somebody without an account, or who comes by a link that was shared: below every role.

    `page` is set for a shared link: the one page (name of its address, and what is in it) that it
    leads to, beside `parts`, the names of the pages that belong to it.
    """

    __slots__ = ("page", "parts", "place", "project")

    def __init__(
        self,
        *,
        project: int,
        place: str,
        page: tuple[str, Mapping[str, str]] | None = None,
        parts: frozenset[str] = frozenset(),
    ) -> None:
        given = {
            "user": User(username="visitor"),
            "role": ROLE,
            "token": None,
            "project": project,
            "place": place,
            "page": page,
            "parts": parts,
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)

    project: int
    place: str
    page: tuple[str, Mapping[str, str]] | None
    parts: frozenset[str]

    def __repr__(self) -> str:
        return f"Visitor({self.place})"

    @property
    def team(self) -> Team:
        raise NotFoundError("only members of the team see this")

    @property
    def sight(self) -> Hashable:
        return ("visitor", self.place)

    def sees(self, project: str, *, team: str = "") -> Q:
        return Q(**{project: self.project})

    def sees_project(self, project: int, team: int) -> bool:
        return project == self.project

    def may_open(self, name: str, given: Mapping[str, str]) -> bool:
        """Whether a page that is open to visitors is one of those that this one was shown."""
        return self.page is None or (
            name in self.parts and all(given.get(k) == v for k, v in self.page[1].items())
        )

    def has(self, role: str) -> bool:
        return False

    def require(self, role: str, *, to: str) -> None:
        raise PermissionRefusedError(
            f"visitors can only view; to {to}, log in as a member of the team"
        )


def project_condition(member: Member) -> tuple[str, int]:
    """`Member.sees` of the table `project` for queries written by hand: its text, to be followed by
    more, and the one parameter in it."""
    if member.project is not None:
        return "project.id = %s AND ", member.project
    return "project.team_id = %s AND ", member.team.pk
