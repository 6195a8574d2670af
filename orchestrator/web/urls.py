"""The pages' URLs: each area has its own, without a prefix."""

from django.urls import include, path

from orchestrator.web import downloads

AREAS = (
    "account",
    "alerts",
    "backfills",
    "benchmarks",
    "catalogue",
    "channels",
    "comparisons",
    "forges",
    "help",
    "history",
    "hosts",
    "imports",
    "overview",
    "projects",
    "references",
    "reports",
    "runs",
    "schedules",
    "sharing",
    "team",
    "trials",
)

urlpatterns = [
    *(path("", include(f"orchestrator.web.{area}.urls")) for area in AREAS),
    path("cli/pitwall", downloads.serve_command_line, name="command-line"),
    path("schemas/definition.json", downloads.serve_definition_schema, name="definition-schema"),
]
