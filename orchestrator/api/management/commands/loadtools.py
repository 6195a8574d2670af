"""`manage.py loadtools` prints the committed docs/load-tools.md."""

from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.loadtools.sheets import render_document


class Command(BaseCommand):
    help = "Prints docs/load-tools.md: the capabilities of all load tools."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(render_document(), ending="")
