"""Restores the database from a file of `backup` in one transaction; see docs/backup.md.

Stop web, workers and beat before. `restore --check FILE` only checks that the file is complete.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cli.pitwall.units import format_count
from orchestrator.accounts.vault import describe_missing
from orchestrator.archives.database.manifest import Manifest
from orchestrator.archives.database.restoring import RestoreResult, check, restore
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import add_quiet, build_progress


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--replace", action="store_true", help="delete the present contents of the database"
        )
        parser.add_argument(
            "--revoke-tokens",
            action="store_true",
            help="also revoke all API tokens, sessions, open invitations and shared links",
        )
        parser.add_argument("--check", action="store_true", help="change nothing")
        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        path = options["file"]
        try:
            with build_progress(options, f"Reading {path.name}") as show:
                if options["check"]:
                    manifest = check(path, read=show)
                else:
                    done = restore(
                        path,
                        replace=options["replace"],
                        revoke_tokens=options["revoke_tokens"],
                        read=show,
                    )
                    manifest = done.manifest
        except PitwallError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_describe_manifest(path, manifest))
        if not options["check"]:
            if options["revoke_tokens"]:
                self.stdout.write("All its tokens, sessions, invitations and links are revoked.")
            self._print_result(done)

    def _print_result(self, done: RestoreResult) -> None:
        self.stdout.write("The backup is restored.")
        if done.missing:
            self.stdout.write(
                f"It is from an older Pitwall: {len(done.missing)} migrations are missing. Run "
                "`manage.py migrate`, then `manage.py rotate_secrets --dry-run`, which checks "
                "whether its secrets can be decrypted."
            )
        for line in done.broken or ():
            self.stderr.write(f"cannot be decrypted with the configured keys: {line}")
        if done.broken:
            steps = "".join(f"\n  {each}" for each in describe_missing(done.manifest.sealing_keys))
            raise CommandError(
                "all rows are restored, but not all secrets can be decrypted. Set the missing "
                "keys, then check with `manage.py rotate_secrets --dry-run`; or enter these "
                f"secrets again (docs/secrets.md):{steps}"
            )


def _describe_manifest(path: Path, manifest: Manifest) -> str:
    return (
        f"{path}: from {manifest.made_at}, Pitwall {manifest.pitwall}, PostgreSQL "
        f"{manifest.postgresql}, {format_count(manifest.rows)} rows of {len(manifest.tables)} "
        "tables; it is complete"
    )
