"""Creates a project from a file of `export_project` in one transaction; see docs/backup.md."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cli.pitwall.units import format_count
from orchestrator.accounts.selectors import load_first_owner
from orchestrator.archives.projects.importing import import_project
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import add_quiet, build_progress


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--team", help="slug; required if there are several teams")
        parser.add_argument("--as", dest="slug", default="", help="the slug of the new project")
        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        path = options["file"]
        try:
            member = load_first_owner(options["team"])
            with build_progress(options, f"Reading {path.name}") as show:
                done = import_project(member=member, path=path, slug=options["slug"], read=show)
        except PitwallError as error:
            raise CommandError(str(error)) from error
        name = f"{done.project.team.slug}/{done.project.slug}"
        if done.rows:
            self.stdout.write(f"{name}: {format_count(done.rows)} rows, of {done.manifest.made_at}")
        else:
            self.stdout.write(f"{name} was already imported from this file; nothing was changed")
