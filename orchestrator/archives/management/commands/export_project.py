"""Writes a project with all its measurements into one file; see docs/backup.md."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cli.pitwall.units import format_count
from orchestrator.accounts.selectors import load_first_owner
from orchestrator.archives.projects.exporting import export_project
from orchestrator.benchmarks.selectors import load_project
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import add_quiet, build_progress


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("team", help="slug")
        parser.add_argument("project", help="slug")
        parser.add_argument("file", type=Path)
        parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        path = options["file"]
        try:
            project = load_project(load_first_owner(options["team"]), options["project"])
            with build_progress(options, f"Writing {path.name}") as show:
                done = export_project(project, path, overwrite=options["overwrite"], written=show)
        except PitwallError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{path}: {format_count(done.rows)} rows of {project.team.slug}/{project.slug}"
        )
        if done.excluded_runs:
            self.stdout.write(f"Not included: {done.excluded_runs} runs that have not ended")
