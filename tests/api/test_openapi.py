"""The schema is a promise: it is committed, and a page shows it."""

import re
from pathlib import Path

from django.test import Client

from orchestrator.api.openapi import DescribedAPI, render_schema
from orchestrator.api.v1 import api

SNAPSHOT = Path(__file__).parents[2] / "docs" / "api" / "openapi.json"


def test_the_committed_schema_is_the_schema():
    assert render_schema(api) == SNAPSHOT.read_text(), "see docs/contributing.md: the schemas"


def test_the_schema_is_served_without_a_login(db):
    answer = Client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.1")
    assert "/api/v1/runs/{run_id}" in answer.json()["paths"]


def test_the_schema_is_read_once_and_has_an_etag(db, monkeypatch):
    def making(*_, **__):
        raise AssertionError("it was made for a request")

    monkeypatch.setattr(DescribedAPI, "get_openapi_schema", making)
    first = Client().get("/api/v1/openapi.json")
    assert first.content == SNAPSHOT.read_bytes()
    assert first["Cache-Control"] == "public, max-age=300"
    again = Client().get("/api/v1/openapi.json", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert Client().head("/api/v1/openapi.json")["ETag"] == first["ETag"]
    refused = Client().post("/api/v1/openapi.json")
    assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD")
    assert Client().get("/api/v1/docs").status_code == 200


def test_every_reference_of_the_schema_resolves():
    text = render_schema(api)
    known = set(api.get_openapi_schema(path_prefix="/api/v1/")["components"]["schemas"])
    assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= known


#: Texts without a pattern; `test_a_nul_byte_is_refused` sends a NUL byte to each.
CHECKED_ELSEWHERE = {
    "HostIn.run_as", "HostSettingsIn.env", "HostSettingsIn.tuning", "ProfileIn.price_per_hour",
    "ResultIn.metrics", "ResultIn.parameters",
}  # fmt: skip


def test_no_text_of_a_request_may_contain_a_nul_byte():
    """PostgreSQL cannot store one; a text without a pattern would end in status 500."""
    schemas = api.get_openapi_schema(path_prefix="/api/v1/")["components"]["schemas"]
    unchecked = {
        f"{name}.{field}"
        for name, schema in schemas.items()
        if name.endswith("In")
        for field, value in schema.get("properties", {}).items()
        if any(_accepts_any_text(each) for each in _list_alternatives(value))
    }
    assert unchecked == CHECKED_ELSEWHERE


def _list_alternatives(schema):
    """Return the schema and those of its alternatives, items and values."""
    parts = [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", [])]
    parts += [schema[key] for key in ("items", "additionalProperties") if schema.get(key)]
    nested = [each for part in parts if isinstance(part, dict) for each in _list_alternatives(part)]
    return [schema, *nested]


def _accepts_any_text(schema):
    if schema.get("type") == "object":
        return "properties" not in schema and schema.get("additionalProperties") is not False
    guards = ("pattern", "enum", "const", "format")
    return schema.get("type") == "string" and not any(key in schema for key in guards)


def test_every_operation_lists_its_error_responses():
    for methods in api.get_openapi_schema(path_prefix="/api/v1/")["paths"].values():
        for operation in methods.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
            assert operation["security"] == [{"BearerToken": []}]


def test_every_path_is_in_one_router():
    """Django asks the first that has the path, and whatever another router has there is lost."""
    api.get_openapi_schema(path_prefix="/api/v1/")
    paths = [path for prefix, router in api._routers for path in router.path_operations]
    assert sorted(paths) == sorted(set(paths))
