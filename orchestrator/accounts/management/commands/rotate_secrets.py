"""`manage.py rotate_secrets` encrypts all secrets at rest with the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from orchestrator.accounts.sealed_columns import (
    SealedColumn,
    SealRotation,
    list_sealed_columns,
    rotate_seals,
)
from orchestrator.accounts.vault import get_keyring


class Command(BaseCommand):
    help = "Encrypt all secrets at rest with the newest key of PITWALL_SEALING_KEYS."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only show the number of values")

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"The newest key is {get_keyring().newest}.")
        results = [
            self._column(column, write=not options["dry_run"]) for column in list_sealed_columns()
        ]
        broken = sum(len(each.broken) for each in results)
        if broken:
            raise CommandError(
                f"{broken} of {sum(each.rows for each in results)} rows cannot be "
                "decrypted; keep the older keys, restore the missing ones, and run this again"
            )
        if not options["dry_run"]:
            self.stdout.write("All secrets use the newest key now; older keys may be removed.")

    def _column(self, column: SealedColumn, *, write: bool) -> SealRotation:
        """Encrypt one column again, and print a line for each batch."""
        report = SealRotation(column=column)
        done = "encrypted again" if write else "to encrypt again"
        for report in rotate_seals(column, write=write):
            self.stdout.write(f"  {column}: {report.rows} rows, {report.resealed} {done}")
        by_key = ", ".join(f"{number} by {key}" for key, number in sorted(report.keys.items()))
        self.stdout.write(f"{column}: {report.rows} rows ({by_key or 'none sealed'})")
        for line in report.broken:
            self.stderr.write(f"{column} {line}")
        return report
