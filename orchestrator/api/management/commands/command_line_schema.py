"""`manage.py command_line_schema` prints the committed JSON Schema of the command line."""

from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.api.command_line_schema import render_command_line_schema


class Command(BaseCommand):
    help = "Prints the JSON Schema of what the command line prints with --json."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(render_command_line_schema(), ending="")
