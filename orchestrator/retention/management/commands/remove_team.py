"""Deletes a team with all its data permanently; see docs/teams.md.

It lists the data and asks for the team's short name; `--confirm NAME` answers for a script.
"""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cli.pitwall.units import format_count
from orchestrator.accounts.models import Team
from orchestrator.accounts.selectors import load_team
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import add_quiet, build_progress
from orchestrator.retention.whole_team import (
    check_is_idle,
    list_team_dependents,
    remove_whole_team,
)


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("team", help="slug of the team")
        parser.add_argument(
            "--confirm", metavar="NAME", help="the slug again, to skip the question"
        )
        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            team = load_team(options["team"])
            check_is_idle(team)
            self._print_dependents(team)
            _confirm(team, options["confirm"])
            with build_progress(options, f"Removing {team.slug}") as show:
                remove_whole_team(team=team, progress=show)
        except PitwallError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"The team {team.name} is removed.")

    def _print_dependents(self, team: Team) -> None:
        self.stdout.write(f"These are deleted permanently with the team {team.name} ({team.slug}):")
        for each in list_team_dependents(team):
            self.stdout.write(f"  {format_count(each.count)} {each.title}")
        self.stdout.write(
            "and its audit log. Users keep their accounts, and hosts that are reached over SSH "
            "keep their work folders."
        )


def _confirm(team: Team, given: str | None) -> None:
    if given is None:
        if not sys.stdin.isatty():
            raise CommandError(
                f"there is no terminal to ask: repeat the name with --confirm {team.slug}"
            )
        given = input(f"Repeat {team.slug} to remove it: ").strip()
    if given != team.slug:
        raise CommandError(f"{given!r} is not {team.slug}: nothing was removed")
