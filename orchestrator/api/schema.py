"""The OpenAPI document of the API, and its text as it is committed."""

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
    """Adds to every operation that it may answer with a problem document, and where a key makes it
    safe to be repeated."""

    def create_temporal_response(self, request: HttpRequest) -> HttpResponse:
        # The only place between the token and the operation.
        check_shape(request)
        return super().create_temporal_response(request)

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schema["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
        for methods in schema["paths"].values():
            for operation in methods.values():
                if _makes(operation):
                    operation.setdefault("parameters", []).append(_KEY)
                operation["responses"]["default"] = {
                    "description": "Rejected: the problem document has the reason",
                    "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
                }
        return schema

    def get_openapi_operation_id(self, operation: Any) -> str:
        return operation.view_func.__name__


def _makes(operation: dict[str, Any]) -> bool:
    """Whether it makes something from JSON, and does not say itself what a key means."""
    named = {each["name"] for each in operation.get("parameters", [])}
    media = operation.get("requestBody", {}).get("content", {JSON: {}})
    return 201 in operation["responses"] and JSON in media and HEADER not in named


def schema_text(api: NinjaAPI) -> str:
    """The document as it is committed: sorted and indented, so that a change reads well."""
    schema = api.get_openapi_schema(path_prefix="/api/v1/")
    return json.dumps(json.loads(json.dumps(schema)), indent=2, sort_keys=True) + "\n"
