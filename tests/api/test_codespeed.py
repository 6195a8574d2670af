"""Clients of Codespeed send results to the address that they know, with a token."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from orchestrator.accounts.models import ApiToken, Scope
from orchestrator.accounts.services import create_token
from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import ChangedSeries, Point, Reading, Series
from orchestrator.retention.deletions import delete_project
from tests.api.conftest import ApiClient
from tests.support.world import World


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    forget_cached()
    yield
    forget_cached()


def result(world: World, **changes: Any) -> dict[str, Any]:
    return {
        "commitid": world.shas[0],
        "branch": "default",
        "project": "Server",
        "executable": "CPython 3.13",
        "benchmark": "float",
        "environment": "Dual Core",
        "result_value": 4000,
        "result_date": "2025-02-03 04:05:06",
        "std_dev": 1.5,
        "units": "ms",
        **changes,
    }


def basic(secret: str, user: str = "any") -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()}


def send(
    headers: dict[str, str], results: Any, path: str = "/result/add/json/", **fields: Any
) -> Any:
    body = {"json": json.dumps(results), **fields} if results is not None else fields
    return Client(enforce_csrf_checks=True).post(path, body, headers=headers)


def test_results_become_points_of_series(world: World, alice: ApiClient) -> None:
    results = [
        result(world),
        result(world, commitid=world.shas[1][:10], result_value="4100.5"),
        result(world, benchmark="int", units="score", lessisbetter=False, result_value=7),
    ]
    answer = send(basic(alice.secret), results)
    assert (answer.status_code, answer.content) == (202, b"All result data saved successfully\n")
    benchmark = Benchmark.objects.get(slug="server", project=world.project)
    series = Series.objects.get(benchmark=benchmark, metric__key="script.time_s")
    assert series.host.name == "dual-core"
    assert series.case.parameters == {"executable": "CPython 3.13", "benchmark": "float"}
    points = Point.objects.filter(series=series).order_by("position")
    assert [(point.commit.sha, point.mean) for point in points] == [
        (world.shas[0], 4.0),
        (world.shas[1], 4.1005),
    ]
    assert Series.objects.filter(metric__key="script.value_higher").count() == 1
    # New results are news, unlike those of a history.
    assert ChangedSeries.objects.filter(history_import=None).exists()


def test_a_result_that_is_sent_again_adds_nothing_and_another_value_is_a_trial(
    world: World, alice: ApiClient
) -> None:
    for value in (4000, 4000, 4010):
        assert send(basic(alice.secret), result(world, result_value=value)).status_code == 202
    [point] = Point.objects.all()
    assert point.trials == Reading.objects.count() == 2


def test_an_unknown_commit_is_stored_at_its_date(world: World, alice: ApiClient) -> None:
    sent = result(world, commitid="e" * 40, revision_date="2024-05-06T07:08:09")
    assert send(basic(alice.secret), sent).status_code == 202
    commit = Commit.objects.get(sha="e" * 40)
    assert commit.committed_at.isoformat() == "2024-05-06T07:08:09+00:00"
    assert commit.position is not None


def test_a_single_result_may_be_sent_as_fields_of_a_form(world: World, alice: ApiClient) -> None:
    fields = result(world, lessisbetter="True", std_dev="None", revision_date="None")
    answer = send(basic(alice.secret), None, "/result/add/", **fields)
    assert (answer.status_code, answer.content) == (202, b"Result data saved successfully\n")
    assert Point.objects.get().mean == 4.0


def test_the_token_is_sent_by_basic_or_bearer_authentication(
    world: World, alice: ApiClient
) -> None:
    for headers in (
        basic(alice.secret),
        basic(alice.secret, user=""),
        {"Authorization": f"Bearer {alice.secret}"},
    ):
        assert send(headers, result(world)).status_code == 202
    for headers in (
        {},
        basic("pw_wrong"),
        basic(""),
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe").decode()},
        {"Authorization": f"Digest {alice.secret}"},
        {"Authorization": "Bearer"},
    ):
        answer = send(headers, result(world))
        assert answer.status_code == 401, headers
        assert answer["WWW-Authenticate"] == 'Basic realm="pitwall"'
    ApiToken.objects.update(revoked_at="2025-01-01T00:00Z")
    assert send(basic(alice.secret), result(world)).status_code == 401


def test_a_session_is_no_authentication(world: World) -> None:
    browser = Client()
    browser.force_login(world.alice.user)
    answer = browser.post("/result/add/json/", {"json": json.dumps(result(world))})
    assert answer.status_code == 401
    assert not Reading.objects.exists()


def test_viewers_strangers_and_tokens_of_other_scopes_store_nothing(
    world: World, alice: ApiClient, bob: ApiClient, mallory: ApiClient
) -> None:
    assert send(basic(bob.secret), result(world)).status_code == 403
    answer = send(basic(mallory.secret), result(world))
    assert answer.status_code == 404
    assert b"has no project Server; its projects are: none" in answer.content
    reader = create_token(member=world.alice, name="reader", scopes=[Scope.READ]).secret
    assert send(basic(reader), result(world)).status_code == 403
    assert not Reading.objects.exists()
    assert not Benchmark.objects.filter(slug="server").exists()


def test_a_token_of_one_project_stores_results_only_there(world: World) -> None:
    other = world.add_project()
    token = create_token(member=world.alice, name="ci", project=other.pk, scopes=[Scope.RESULTS])
    assert send(basic(token.secret), result(world)).status_code == 202
    assert Point.objects.get().series.benchmark.project == other


def test_a_token_of_a_deleted_project_stores_nothing(world: World) -> None:
    token = create_token(member=world.alice, name="ci", project=world.project.pk)
    delete_project(member=world.alice, slug="server")
    answer = send(basic(token.secret), result(world))
    assert answer.status_code == 404
    assert b"the project of this token was deleted" in answer.content
    assert not Reading.objects.exists()


def test_a_refused_request_leaves_no_commit_and_no_benchmark(
    world: World, alice: ApiClient
) -> None:
    sent = [result(world, commitid="e" * 40), result(world, result_value=1e200, units="points")]
    assert send(basic(alice.secret), sent).status_code == 400
    assert not Commit.objects.filter(sha="e" * 40).exists()
    assert [each.slug for each in Benchmark.objects.all()] == ["hello"]


def test_results_make_a_draft_a_benchmark(world: World, alice: ApiClient) -> None:
    Benchmark.objects.create(project=world.project, slug="server", title="Server", is_draft=True)
    assert send(basic(alice.secret), result(world)).status_code == 202
    assert not Benchmark.objects.get(slug="server").is_draft


def test_the_project_is_matched_by_its_name_or_slug(world: World, alice: ApiClient) -> None:
    Project.objects.filter(pk=world.project.pk).update(name="The Server")
    for name in ("The Server", "server", "SERVER"):
        assert send(basic(alice.secret), result(world, project=name)).status_code == 202
    answer = send(basic(alice.secret), result(world, project="Pypy"))
    assert answer.status_code == 404
    assert b"has no project Pypy; its projects are: server" in answer.content


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("{", b"not JSON"),
        ("[]", b"there is no result in this request"),
        ("7", b"expected an object, got 7"),
        ('[{"project": "p"}]', b"[0].environment: this field is missing"),
        ("[" * 100_000, b"too deep"),
        ('{"a": "\\u0000"}', b"this field is missing"),
    ],
)
def test_a_request_that_cannot_be_stored_is_refused_with_the_reason(
    world: World, alice: ApiClient, sent: str, words: bytes
) -> None:
    answer = Client().post("/result/add/json/", {"json": sent}, headers=basic(alice.secret))
    assert answer.status_code == 400
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert words in answer.content


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"result_value": "fast"}, b'expected a number, got "fast"'),
        ({"result_value": True}, b"expected a number, got true"),
        ({"benchmark": "a\0b"}, b"a text has a NUL"),
        ({"benchmark": ["x"]}, b"expected a text"),
        ({"result_date": "soon"}, b"expected a date and time"),
        ({"revision_date": "0001-01-01T00:00:00+01:00"}, b"expected a date and time"),
        ({"executable": "x" * 5_000}, b"expected names of at most 4000 characters"),
        ({"result_value": 1e200, "units": "points"}, b"less than or equal to"),
        ({"commitid": ""}, b"names neither a commit nor a date"),
    ],
)
def test_one_wrong_result_refuses_all(
    world: World, alice: ApiClient, changes: dict[str, Any], words: bytes
) -> None:
    wrong = {**result(world, **changes)}
    if changes == {"commitid": ""}:
        del wrong["result_date"]
    answer = send(basic(alice.secret), [result(world), wrong])
    assert answer.status_code == 400
    assert words in answer.content
    assert not Reading.objects.exists()


def test_the_number_of_results_in_a_request_is_limited(world: World, alice: ApiClient) -> None:
    many = [result(world, benchmark=f"b{number}") for number in range(1_001)]
    answer = send(basic(alice.secret), many)
    assert (answer.status_code, answer.content) == (
        400,
        b"a request has at most 1000 results\n",
    )


def test_other_methods_are_refused(world: World, alice: ApiClient) -> None:
    answer = Client().get("/result/add/json/", headers=basic(alice.secret))
    assert answer.status_code == 405


def test_wrong_tokens_are_limited_by_address(world: World, settings: Any) -> None:
    settings.VISITOR_REQUESTS_A_MINUTE = 3
    statuses = [send(basic("pw_no"), result(world)).status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]


@pytest.mark.django_db(transaction=True)
def test_the_client_of_codespeed_is_understood(
    world: World, alice: ApiClient, live_server: Any
) -> None:
    """As the scripts of Codespeed do it: urllib, a form with `json`, and a password manager."""
    address = f"{live_server.url}/result/add/json/"
    passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
    passwords.add_password(None, live_server.url, "codespeed", alice.secret)
    opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(passwords))
    body = urllib.parse.urlencode({"json": json.dumps([result(world)])}).encode()
    with opener.open(address, body) as answer:
        assert answer.status == 202
    assert Point.objects.count() == 1
