"""`manage.py definition_schema`: prints the committed JSON Schema of definitions."""

from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.benchmarks.json_schema import render_definition_schema


class Command(BaseCommand):
    help = "Prints the JSON Schema of benchmark definitions."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(render_definition_schema(), ending="")
