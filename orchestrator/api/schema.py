"""The OpenAPI document of the API, and its text as it is committed."""

import json
from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from orchestrator.api.errors import MEDIA_TYPE
from orchestrator.api.schemas.common import Problem

_PROBLEM = {"$ref": "#/components/schemas/Problem"}


class DescribedAPI(NinjaAPI):
    """Adds to every operation that it may answer with a problem document."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schema["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
        for methods in schema["paths"].values():
            for operation in methods.values():
                operation["responses"]["default"] = {
                    "description": "Refused: the problem document says why",
                    "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
                }
        return schema

    def get_openapi_operation_id(self, operation: Any) -> str:
        return operation.view_func.__name__


def schema_text(api: NinjaAPI) -> str:
    """The document as it is committed: sorted and indented, so that a change reads well."""
    schema = api.get_openapi_schema(path_prefix="/api/v1/")
    return json.dumps(json.loads(json.dumps(schema)), indent=2, sort_keys=True) + "\n"
