"""`Visitor`: a viewer of one project who is not a member of its team.

A visitor has no team: selectors that use the team refuse, so access is closed by default. Selectors
for visitors filter by `member.sees(…)`.
"""

from collections.abc import Hashable, Mapping

from django.db.models import Q

from orchestrator.accounts.members import Member, build_live_condition
from orchestrator.accounts.models import Team, User
from orchestrator.core.errors import NotFoundError, PermissionRefusedError

ROLE = "visitor"


class Visitor(Member):
    """A user without an account, or with a shared link: below every role.

    `page` is set for a shared link: the linked page (URL name and parameters). `parts` are the URL
    names of the pages that belong to it.
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
        raise NotFoundError("only members of the team can see this; log in as a member")

    @property
    def sight(self) -> Hashable:
        return ("visitor", self.place)

    def sees(self, project: str, *, team: str = "") -> Q:
        visible = Q(**{project: self.project}) & build_live_condition(project)
        if project.endswith("benchmark__project"):
            # A draft was never saved: only the team sees its trial run.
            visible &= Q(**{f"{project.removesuffix('project')}is_draft": False})
        return visible

    def sees_project(self, project: int, team: int) -> bool:
        return project == self.project

    def may_open(self, name: str, given: Mapping[str, str]) -> bool:
        """Return whether a page that is open to visitors belongs to the shared page, if any."""
        return self.page is None or (
            name in self.parts and all(given.get(k) == v for k, v in self.page[1].items())
        )

    def has(self, role: str) -> bool:
        return False

    def require(self, role: str, *, to: str) -> None:
        raise PermissionRefusedError(
            f"visitors can only view; to {to}, log in as a member of the team"
        )


def build_project_condition(member: Member) -> tuple[str, int]:
    """Return `Member.sees` of the tables `project` and `benchmark` as SQL: its text, ending in
    AND, and its parameter."""
    live = "benchmark.deleted_at IS NULL AND "
    if isinstance(member, Visitor):
        live += "NOT benchmark.is_draft AND "
    if member.project is not None:
        return f"{live}project.id = %s AND ", member.project
    return f"{live}project.team_id = %s AND ", member.team.pk
