"""The schema is a promise: it is committed, and a page shows it."""

import re
from pathlib import Path

from django.test import Client

from orchestrator.api.schema import DescribedAPI, schema_text
from orchestrator.api.v1 import api

SNAPSHOT = Path(__file__).parents[2] / "docs" / "api" / "openapi.json"


def test_the_committed_schema_is_the_schema():
    assert schema_text(api) == SNAPSHOT.read_text(), "see docs/contributing.md: the schemas"


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
    text = schema_text(api)
    known = set(api.get_openapi_schema(path_prefix="/api/v1/")["components"]["schemas"])
    assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= known


def test_every_operation_lists_its_error_responses():
    for methods in api.get_openapi_schema(path_prefix="/api/v1/")["paths"].values():
        for operation in methods.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
            assert operation["security"] == [{"BearerToken": []}]


def test_the_page_shows_every_operation_and_schema(db):
    page = Client().get("/api/v1/docs")
    assert page.status_code == 200
    html = page.content.decode()
    schema = api.get_openapi_schema()
    for path in schema["paths"]:
        assert path in html
    for name in schema["components"]["schemas"]:
        assert f'id="schema-{name}"' in html


def test_the_page_works_with_a_strict_content_security_policy(db):
    html = Client().get("/api/v1/docs").content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", html)


def test_links_of_the_page_resolve(db):
    html = Client().get("/api/v1/docs").content.decode()
    ids = set(re.findall(r'id="([^"]+)"', html))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= ids


def test_every_path_is_in_one_router():
    """Django asks the first that has the path, and whatever another router has there is lost."""
    api.get_openapi_schema(path_prefix="/api/v1/")
    paths = [path for prefix, router in api._routers for path in router.path_operations]
    assert sorted(paths) == sorted(set(paths))
