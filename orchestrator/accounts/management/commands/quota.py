"""Shows or sets the quotas of a team; see docs/configuration.md.

`quota TEAM --hosts 4 --queued-minutes 600 --storage-mib none` sets quotas for the team; omitted
ones stay unchanged. `quota TEAM --usual` restores the defaults.
"""

from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.quotas import load_quotas, set_quotas
from orchestrator.accounts.selectors import load_team
from orchestrator.core.errors import NotFoundError

_LIMITS = ("hosts", "queued_minutes", "storage_mib", "mirrors_mib")


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("team", help="slug of the team")
        for name in _LIMITS:
            parser.add_argument(f"--{name.replace('_', '-')}", help="a number, or none")
        parser.add_argument("--usual", action="store_true", help="restore the default quotas")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            team = load_team(options["team"])
        except NotFoundError as error:
            raise CommandError(str(error)) from error
        limits = {name: options[name] for name in _LIMITS if options[name] is not None}
        if options["usual"]:
            set_quotas(team=team, quotas=replace(load_quotas(team), own=False))
        elif limits:
            changes: dict[str, Any] = {name: _limit(name, text) for name, text in limits.items()}
            set_quotas(team=team, quotas=replace(load_quotas(team), own=True, **changes))
        quotas = load_quotas(team)
        for name in _LIMITS:
            value = getattr(quotas, name)
            self.stdout.write(f"{name}: {'no limit' if value is None else value}")
        self.stdout.write("custom quotas" if quotas.own else "default quotas")


def _limit(name: str, text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal() or len(text) > 9:
        raise CommandError(f"--{name.replace('_', '-')}: expected a number or none, got {text!r}")
    return int(text)
