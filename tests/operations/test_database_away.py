"""A database that ends our sessions, as one that restarts: 503 for now, and then as before."""

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.services import create_token
from tests.support.engine import own_database_url
from tests.support.factories import Personas, make_personas

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def personas() -> Personas:
    return make_personas()


def _end_our_session() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    with psycopg.connect(own_database_url(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def test_a_page_says_so_and_is_there_again(personas: Personas) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(personas.alice.user)
    _end_our_session()
    answer = client.get(reverse("runs"))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert "The database does not answer" in answer.content.decode()
    connection.close()
    assert client.get(reverse("runs")).status_code == 200


def test_the_api_says_so_and_is_there_again(personas: Personas) -> None:
    secret = create_token(member=personas.alice, name="ci").secret
    headers = {"Authorization": f"Bearer {secret}"}
    _end_our_session()
    answer = Client().get("/api/v1/runs", headers=headers)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "the database does not answer" in answer.json()["detail"]
    connection.close()
    assert Client().get("/api/v1/runs", headers=headers).status_code == 200


def test_any_other_mistake_is_ours(personas: Personas, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(personas.alice.user)
    monkeypatch.setattr("orchestrator.web.pages.runs.render", lambda *_: 1 / 0)
    answer = client.get(reverse("runs"))
    assert (answer.status_code, answer.has_header("Retry-After")) == (500, False)
    assert "Something went wrong" in answer.content.decode()
