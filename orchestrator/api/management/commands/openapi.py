"""`manage.py openapi` prints the committed OpenAPI document in docs/api/."""

from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.api.openapi import render_schema
from orchestrator.api.v1 import api


class Command(BaseCommand):
    help = "Prints the OpenAPI document of the API."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(render_schema(api), ending="")
