"""Every refusal is a problem document."""

import pytest
from django.test import Client, RequestFactory

from orchestrator.api.v1 import api
from orchestrator.core import errors


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.NotFoundError("no"), 404),
        (errors.PermissionRefusedError("no"), 403),
        (errors.InvalidRequestError("no"), 422),
        (errors.ConflictError("no"), 409),
        (errors.HostError("no"), 502),
        (errors.UnreachableError("no"), 502),
        (errors.HostSetupError("no"), 502),
        (errors.PitwallError("no"), 500),
    ],
)
def test_each_error_has_its_status(error, status):
    answer = api.on_exception(RequestFactory().get("/"), error)
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"


def test_an_unexpected_error_is_hidden_and_logged(caplog):
    answer = api.on_exception(RequestFactory().get("/api/v1/x"), ZeroDivisionError("secret"))
    assert answer.status_code == 500
    assert b"secret" not in answer.content
    assert "GET /api/v1/x failed" in caplog.text


def test_an_invalid_request_is_refused_with_the_field(world, alice):
    answer = alice.post("runs", world.run_body(hosts=["nowhere"]))
    assert answer.status_code == 422
    assert answer.json() == {
        "type": "about:blank",
        "title": answer.json()["title"],
        "status": 422,
        "detail": "the team has no host named nowhere; its hosts are: here",
        "field": "hosts",
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"hosts": ["here", 7]}, "hosts[1]"),
        ({"hosts": []}, "hosts"),
        ({"hosts": ["he\0re"]}, "hosts[0]"),
        ({"rounds": 0}, "rounds"),
        ({"rounds": "many"}, "rounds"),
        ({"baseline": ""}, "baseline"),
        ({"baseline": "nosuchbranch"}, "baseline"),
        ({"contenders": [], "baseline": None}, "contenders"),
        ({"contenders": ["nosuchbranch"]}, "contenders"),
        ({"contenders": [], "contender": "nosuchbranch"}, "contender"),
        ({"contenders": [], "ref": "nosuchbranch"}, "ref"),
        ({"contender": "x" * 201}, "contender"),
        ({"rouns": 3}, "rouns"),
    ],
)
def test_an_invalid_value_is_refused_with_its_path(world, alice, changes, field):
    answer = alice.post("runs", world.run_body(**changes))
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize(
    ("query", "field"),
    [({"limit": 0}, "limit"), ({"cursor": "x"}, "cursor"), ({"state": "?"}, "state")],
)
def test_an_invalid_parameter_is_named(alice, query, field):
    answer = alice.get("runs", **query)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize("text", ["5\f", " 5", "+5", "1_0", "inf", "", "5.0.0"])
def test_a_parameter_that_is_not_exactly_a_number_is_refused(world, alice, text):
    run = world.queue_run()
    for path, name in (("runs", "limit"), (f"runs/{run.pk}", "wait")):
        answer = alice.get(path, **{name: text})
        assert (answer.status_code, answer.json()["field"]) == (422, name)
    assert alice.get("runs", limit="5").status_code == 200
    assert alice.get(f"runs/{run.pk}", wait="0.5").status_code == 200


def test_a_body_that_is_not_json_is_refused(alice):
    answer = alice.post("runs", "{")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/runs/7", "/api/v2/runs", "/api/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_unknown_path_is_reported(db, path, method):
    answer = getattr(Client(enforce_csrf_checks=True), method)(path)
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert path in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "results", {"results": [{"metrics": {"own.\0": 1.0}}]}),
        ("post", "results", {"results": [{"parameters": {"\0": 1}}]}),
        ("post", "results", {"results": [{"parameters": {"connections": "\0"}}]}),
        ("post", "hosts", {"run_as": "bench\0"}),
        ("patch", "hosts/{host}", {"tuning": {"\0": "off"}}),
        ("patch", "hosts/{host}", {"tuning": {"turbo": "\0"}}),
        ("put", "profiles/rack", {"name": "Rack", "price_per_hour": "\0"}),
        ("put", "members/a%00b", {"role": "viewer"}),
        ("get", "reports/a%00b", None),
        ("get", "alerts?assignee=%00", None),
    ],
)
def test_a_nul_byte_is_refused(world, alice, method, path, body):
    """Also where the schema accepts any text; see `test_openapi.py`."""
    if path == "results":
        sent = {
            "id": "1", "project": "server", "benchmark": "hello", "host": "ci-7",
            "commit": "a" * 40, "parameters": {"connections": 4},
            "metrics": {"requests.rate": 1.0}, "at": "2026-11-20T08:00:00Z",
        }  # fmt: skip
        body = {"results": [sent | body["results"][0]]}
    if path == "hosts":
        key = alice.post("credentials", {"name": "lab"}).json()["id"]
        body |= {
            "name": "new", "profile": "any", "address": "10.0.0.9", "login": "ci",
            "credential": key,
        }  # fmt: skip
    answer = getattr(alice, method)(path.format(host=world.host.pk), *([body] if body else []))
    assert answer.status_code in {400, 422}, answer.content
    assert answer.json().get("field") or "NUL byte" in answer.json()["detail"]
