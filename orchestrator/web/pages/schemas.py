"""Schemas that editors fetch, without a login."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from orchestrator.benchmarks.json_schema import schema_text


@require_safe
def definition_schema(request: HttpRequest) -> HttpResponse:
    """The JSON Schema of benchmark definitions."""
    headers = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=3600"}
    return HttpResponse(schema_text(), content_type="application/schema+json", headers=headers)
