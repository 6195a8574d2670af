"""Creates a team; only the operator of Pitwall can, since no page does.

`create_team red --name "Team Red" --owner alice`. Without `--owner` it prints an invitation for the
first owner, who joins with a new or an existing account.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.invitation_mail import build_invitation_link
from orchestrator.accounts.new_teams import start_team
from orchestrator.core.errors import PitwallError


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="its slug: letters, digits, - and _")
        parser.add_argument("--name", default="", help="the display name; default: the slug")
        parser.add_argument("--owner", default="", help="an existing user")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            started = start_team(slug=options["slug"], name=options["name"], owner=options["owner"])
        except PitwallError as error:
            raise CommandError(str(error)) from error
        if started.invitation is None:
            self.stdout.write(f"{options['owner']} owns the team {started.team.name} now.")
            return
        until = started.invitation.invitation.expires_at
        self.stdout.write(
            f"The team {started.team.name} was created. Its first owner joins by this link, once, "
            f"until {until:%Y-%m-%d %H:%M} UTC:\n{build_invitation_link(started.invitation)}"
        )
