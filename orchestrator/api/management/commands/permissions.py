"""`manage.py permissions` prints the committed docs/permissions.md."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.accounts.models import Role
from orchestrator.accounts.permissions import ANYBODY, OPERATIONS, PAGES, PERSON

PREFACE = """\
# Who may do what

Printed by `make permissions` from the table that Pitwall uses
(`orchestrator/accounts/permissions.py`); a test checks each row with each role. *See* means to view
a page, *do* to submit its form or press its button. For a user, objects of another team do not
exist. [Teams](teams.md) describes roles and scopes.
"""


class Command(BaseCommand):
    help = "Prints docs/permissions.md: who can view which page and use which operation."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(render_document(), ending="")


def render_document() -> str:
    return "\n".join([PREFACE, *_render_pages(), "", *_render_operations()]) + "\n"


def _render_pages() -> Iterator[str]:
    yield "## Pages\n"
    yield from _build_head("Page", "", "No account", "No team", *Role.labels)
    for name, row in sorted(PAGES.items()):
        for what, least in (("see", row.see), ("do", row.do)):
            if least is not None:
                yield _render_row([f"`{name}`", what, *_render_roles(least)])


def _render_operations() -> Iterator[str]:
    yield "## API\n"
    yield "A token has the role of its creator, limited by its scopes.\n"
    yield from _build_head("Operation", "Scope", "Token of one project", *Role.labels)
    for name, row in sorted(OPERATIONS.items(), key=lambda item: item[0].split()[::-1]):
        project = "no" if row.whole_team else "yes"
        yield _render_row([f"`{name}`", row.scope, project, *_render_roles(row.role)[2:]])


def _build_head(*titles: str) -> tuple[str, str]:
    return _render_row(titles), _render_row(["---"] * len(titles))


def _render_roles(least: str) -> list[str]:
    """Return a mark for users without account, without team, and for each role."""
    order = [ANYBODY, PERSON, *Role.values]
    return ["yes" if place >= order.index(least) else "no" for place in range(len(order))]


def _render_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
