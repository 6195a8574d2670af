"""`manage.py loadtools`: prints docs/load-tools.md, as it is committed."""

from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.loadtools.sheets import document


class Command(BaseCommand):
    help = "Prints docs/load-tools.md, which says what the sheets of the load tools say."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(document(), ending="")
