"""The OpenAPI document of the API, and its committed text."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from orchestrator.api.errors import MEDIA_TYPE
from orchestrator.api.gate import JSON, check_shape
from orchestrator.api.once import DESCRIPTION, HEADER
from orchestrator.api.schemas.common import Problem

_KEY = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "description": DESCRIPTION,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[\x20-\x7e]*$"},
}
_PROBLEM = {"$ref": "#/components/schemas/Problem"}


class DescribedAPI(NinjaAPI):
    """Documents for every operation the problem document, and the idempotency key if it takes
    one."""

    def create_temporal_response(self, request: HttpRequest) -> HttpResponse:
        # The only hook between the token check and the operation.
        check_shape(request)
        return super().create_temporal_response(request)

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schema["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
        for methods in schema["paths"].values():
            for operation in methods.values():
                if _creates_something(operation):
                    operation.setdefault("parameters", []).append(_KEY)
                operation["responses"]["default"] = {
                    "description": "Rejected: the problem document has the reason",
                    "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
                }
        return schema

    def get_openapi_operation_id(self, operation: Any) -> str:
        return operation.view_func.__name__


def _creates_something(operation: dict[str, Any]) -> bool:
    """Return whether it creates an object from JSON and does not document the key itself."""
    named = {each["name"] for each in operation.get("parameters", [])}
    media = operation.get("requestBody", {}).get("content", {JSON: {}})
    return 201 in operation["responses"] and JSON in media and HEADER not in named


def render_schema(api: NinjaAPI) -> str:
    """Return the committed document: sorted and indented, for readable diffs."""
    schema = api.get_openapi_schema(path_prefix="/api/v1/")
    return json.dumps(json.loads(json.dumps(schema)), indent=2, sort_keys=True) + "\n"
