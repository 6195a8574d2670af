"""Writes the whole database into one file while Pitwall runs; see docs/backup.md."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cli.pitwall.units import format_bytes, format_count
from orchestrator.archives.database.backing_up import back_up
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import add_quiet, build_progress


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        path = options["file"]
        try:
            with build_progress(options, f"Writing {path.name}, bytes") as show:
                done = back_up(path, overwrite=options["overwrite"], written=show)
        except PitwallError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{path}: {format_count(done.rows)} rows of {len(done.tables)} tables, "
            f"{format_bytes(done.dump_bytes)}, of PostgreSQL {done.postgresql}"
        )
        if done.sealing_keys:
            self.stdout.write(
                "Its secrets are sealed, and it does not contain the keys. Store these "
                "keys elsewhere: " + ", ".join(done.sealing_keys)
            )
