"""Prints a link for creating the first user and their team, while there is no user.

Without the page: `create_team red` prints an invitation for the first owner of a team.
"""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.first_owner import SETUP_LINK_S, create_setup_link, has_users


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        if has_users():
            self.stdout.write(f"Pitwall has users: log in at {settings.BASE_URL}/login")
            return
        if not settings.SECRET_KEY_IS_GIVEN:
            raise CommandError("set PITWALL_SECRET_KEY to that of the web processes first")
        self.stdout.write(
            "Pitwall has no user yet. Open this link on this machine to create the first one and "
            f"a team. It works once, for {SETUP_LINK_S // 60} minutes:\n\n"
            f"  {create_setup_link()}\n"
        )
