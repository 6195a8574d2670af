"""`manage.py loadtools`: prints docs/load-tools.md, as it is committed."""

from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.loadtools.sheets import document


class Command(BaseCommand):
    help = "Prints docs/load-tools.md: the capabilities of all load tools."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(document(), ending="")
