"""A database that ends our sessions, as one that restarts: 503 for now, and then as before."""

import gc
import logging
import sys
import weakref
from collections.abc import Callable

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, connection, transaction
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import Team
from orchestrator.accounts.services import create_token
from orchestrator.config.celery import app
from orchestrator.operations.outages import OutageFilter
from orchestrator.operations.watched_tasks import WatchedTask
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


def test_a_page_reports_a_lost_database_and_recovers(personas: Personas) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(personas.alice.user)
    _end_our_session()
    answer = client.get(reverse("runs"))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert "The database does not answer" in answer.content.decode()
    connection.close()
    assert client.get(reverse("runs")).status_code == 200


def test_the_api_reports_a_lost_database_and_recovers(personas: Personas) -> None:
    secret = create_token(member=personas.alice, name="ci").secret
    headers = {"Authorization": f"Bearer {secret}"}
    _end_our_session()
    answer = Client().get("/api/v1/runs", headers=headers)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "the database does not answer" in answer.json()["detail"]
    connection.close()
    assert Client().get("/api/v1/runs", headers=headers).status_code == 200


@transaction.atomic
def _lose_the_session_in_a_transaction() -> None:
    _end_our_session()
    Team.objects.update(name="Red")


def test_a_lost_connection_is_freed_when_a_new_one_is_open() -> None:
    connection.ensure_connection()
    lost = weakref.ref(connection.connection)
    with pytest.raises(OperationalError):
        _lose_the_session_in_a_transaction()
    connection.close()
    Team.objects.count()
    gc.collect()
    assert lost() is None


def _use_a_closed_cursor(*_: object) -> None:
    with connection.cursor() as cursor:
        pass
    cursor.execute("SELECT 1")


def _use_a_closed_connection(*_: object) -> None:
    connection.ensure_connection()
    connection.connection.close()
    connection.cursor().execute("SELECT 1")


MISTAKES = (_use_a_closed_cursor, _use_a_closed_connection)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_connection_closed_by_pitwall_is_an_internal_error(
    mistake: Callable[..., None], personas: Personas, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = create_token(member=personas.alice, name="ci").secret
    client = Client(raise_request_exception=False)
    client.force_login(personas.alice.user)
    monkeypatch.setattr("orchestrator.web.runs.views.render", mistake)
    answer = client.get(reverse("runs"))
    connection.close()
    assert (answer.status_code, answer.has_header("Retry-After")) == (500, False)
    monkeypatch.setattr("orchestrator.api.routers.runs.selectors.load_runs", mistake)
    answer = client.get("/api/v1/runs", headers={"Authorization": f"Bearer {secret}"})
    connection.close()
    assert (answer.status_code, answer.has_header("Retry-After")) == (500, False)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_misused_connection_is_logged_and_not_an_outage(mistake: Callable[..., None]) -> None:
    assert _is_logged(mistake), "the server answers"
    connection.close()


def test_a_lost_session_is_an_outage() -> None:
    """Neither the statement that met the loss nor those after it."""
    cursor = connection.cursor()
    _end_our_session()
    met = _is_logged(lambda: cursor.execute("SELECT 1"))
    after = _is_logged(lambda: connection.cursor().execute("SELECT 1"))
    connection.close()
    assert (met, after) == (False, False)


def _is_logged(call: Callable[[], object]) -> bool:
    """Whether the error of a call reaches the log, with its trace."""
    try:
        call()
    except Exception:
        text = logging.LogRecord("x", logging.ERROR, __file__, 1, "failed", None, sys.exc_info())
        return OutageFilter().filter(text)
    raise AssertionError("no error")


def test_any_other_error_is_internal(personas: Personas, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(personas.alice.user)
    monkeypatch.setattr("orchestrator.web.runs.views.render", lambda *_: 1 / 0)
    answer = client.get(reverse("runs"))
    assert (answer.status_code, answer.has_header("Retry-After")) == (500, False)
    assert "Something went wrong" in answer.content.decode()


class Counting(WatchedTask):
    name = "orchestrator.dispatch.tasks.counting"

    def run(self) -> int:
        return Team.objects.count()


class Broken(WatchedTask):
    name = "orchestrator.dispatch.tasks.broken"

    def run(self) -> None:
        _use_a_closed_cursor()


def test_a_task_that_loses_the_database_ends_without_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Celery would copy and keep the traceback of a task that fails."""
    task = app.register_task(Counting())
    assert task() == 0
    _end_our_session()
    assert task() is None
    (record,) = caplog.records
    assert record.getMessage().startswith("task counting did not end: ")
    connection.close()
    assert task() == 0


def test_a_task_with_a_fault_of_its_own_fails() -> None:
    with pytest.raises(InterfaceError):
        app.register_task(Broken())()
