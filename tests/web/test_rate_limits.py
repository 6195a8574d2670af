"""Pages have a rate, by user and by a visitor's address; so have wrong API tokens."""

from typing import Any
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from orchestrator.accounts.services import create_token
from orchestrator.core.addresses import mask_address
from orchestrator.database.redis_server import connect_redis_server
from tests.support.factories import Personas

LIMIT = 3


@pytest.fixture(autouse=True)
def limits(settings: Any) -> None:
    settings.SESSION_REQUESTS_A_MINUTE = settings.VISITOR_REQUESTS_A_MINUTE = LIMIT
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    redis = connect_redis_server(settings.CELERY_BROKER_URL)
    for key in redis.scan_iter("pitwall:rate:*"):
        redis.delete(key)


def statuses(client: Client, path: str, **headers: str) -> list[int]:
    """Of more requests than two minutes allow, as the minute may end between them."""
    return [client.get(path, headers=headers).status_code for _ in range(2 * LIMIT + 1)]


def refused(client: Client, path: str, **headers: str) -> HttpResponse:
    answers = [client.get(path, headers=headers) for _ in range(2 * LIMIT + 1)]
    return next(each for each in answers if each.status_code == 429)


@pytest.mark.django_db
def test_a_visitor_is_limited_by_the_address_that_our_proxy_saw() -> None:
    page = refused(Client(), "/login", x_forwarded_for="198.51.100.7")
    assert page["Retry-After"] == page["RateLimit-Reset"]
    assert "Your address may make 3 requests a minute" in page.content.decode()
    forged = [{"x_forwarded_for": f"192.0.2.{n}, 198.51.100.7"} for n in range(2 * LIMIT + 1)]
    assert 429 in [Client().get("/login", headers=each).status_code for each in forged]
    assert Client().get("/login", headers={"x_forwarded_for": "198.51.100.8"}).status_code == 200


def test_a_user_is_limited_across_addresses(personas: Personas) -> None:
    for number in range(2):
        client = Client()
        client.force_login(personas.alice.user)
        assert 429 in statuses(client, "/", x_forwarded_for=f"198.51.100.{number}")
    other = Client()
    other.force_login(personas.bob.user)
    assert other.get("/", headers={"x_forwarded_for": "198.51.100.0"}).status_code != 429


@pytest.mark.django_db
def test_wrong_tokens_are_counted_by_address() -> None:
    wrong = {"authorization": "Bearer pw_wrong", "x_forwarded_for": "198.51.100.9"}
    answer = refused(Client(), "/api/v1/runs", **wrong)
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["Retry-After"]
    assert "your address may make 3 requests a minute" in answer.json()["detail"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "authorization"),
    [
        ("/api/v1/runs", ""),
        ("/api/v1/runs", "Basic pw_wrong"),
        ("/api/v1/openapi.json", ""),
        ("/api/v1/openapi.json", "Bearer pw_wrong"),
        ("/api/v1/docs", ""),
        ("/api/nothing", "Bearer pw_wrong"),
    ],
)
def test_the_api_without_a_valid_token_is_counted_by_address(path: str, authorization: str) -> None:
    headers = {"x_forwarded_for": "198.51.100.12", "authorization": authorization}
    answer = refused(Client(), path, **headers)
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["Retry-After"] == answer["RateLimit-Reset"]


def test_a_valid_token_is_not_counted_by_address(personas: Personas) -> None:
    token = create_token(member=personas.alice, name="ci").secret
    headers = {"x_forwarded_for": "198.51.100.13", "authorization": f"Bearer {token}"}
    assert set(statuses(Client(), "/api/v1/runs", **headers)) == {200}
    assert Client().get("/login", headers={"x_forwarded_for": "198.51.100.13"}).status_code == 200


@pytest.mark.django_db
def test_webhooks_are_limited_each_and_in_total_by_address() -> None:
    sender = {"x_forwarded_for": "198.51.100.14"}
    first, *others = [f"/hooks/{uuid4()}" for _ in range(30)]
    codes = [Client().post(first, headers=sender).status_code for _ in range(2 * LIMIT + 1)]
    assert codes[0] != 429
    assert codes[-1] == 429
    assert Client().post(others[0], headers=sender).status_code != 429
    assert Client().get("/login", headers=sender).status_code == 200
    # Hooks that nobody made, as many as two minutes allow.
    codes = [Client().post(path, headers=sender).status_code for _ in range(3) for path in others]
    assert codes[-1] == 429


def test_probes_and_static_files_are_not_counted() -> None:
    assert set(statuses(Client(), "/healthz", x_forwarded_for="198.51.100.10")) == {200}


@pytest.mark.django_db
def test_without_redis_pages_are_not_limited(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr("orchestrator.operations.rates._counter._silent_until", 0.0)
    assert set(statuses(Client(), "/login", x_forwarded_for="198.51.100.11")) == {200}


def test_a_network_of_ipv6_counts_as_one_address() -> None:
    assert (
        mask_address("2001:db8:1:2:3::4") == mask_address("2001:db8:1:2::1") == "2001:db8:1:2::/64"
    )
    assert mask_address("198.51.100.7") == "198.51.100.7"


def test_an_address_counts_the_same_in_all_its_spellings() -> None:
    """A socket for both versions of IP, and proxies that add ports, write it differently."""
    forms = ("198.51.100.7", "::ffff:198.51.100.7", "198.51.100.7:4711", "[::ffff:198.51.100.7]:80")
    assert {mask_address(form) for form in forms} == {"198.51.100.7"}
    assert mask_address("[2001:db8:1:2::1]:443") == "2001:db8:1:2::/64"
    assert mask_address("") == mask_address("198.51.100.7:x") == "unknown"
