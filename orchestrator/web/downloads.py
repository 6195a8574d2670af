"""Files that programs download without a login: the command line, and schemas for editors."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from cli.bundle import build_command
from orchestrator.benchmarks.json_schema import render_definition_schema


@require_safe
def serve_command_line(request: HttpRequest) -> HttpResponse:
    """Return `pitwall` in one file, of the same version as this installation's API."""
    headers = {"Content-Disposition": 'attachment; filename="pitwall"'}
    return HttpResponse(build_command(), content_type="application/octet-stream", headers=headers)


@require_safe
def serve_definition_schema(request: HttpRequest) -> HttpResponse:
    """Return the JSON Schema of benchmark definitions."""
    headers = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=3600"}
    return HttpResponse(
        render_definition_schema(), content_type="application/schema+json", headers=headers
    )
