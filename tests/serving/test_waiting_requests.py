"""`?wait=` by a real gunicorn: many requests wait, no thread does."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from orchestrator.accounts.services import create_token
from orchestrator.operations.listening import CHANNEL
from orchestrator.runs.models import Run
from orchestrator.runs.states import RunState
from tests.support.engine import own_database_url
from tests.support.factories import Personas, make_personas
from tests.support.served import Pending, Served, served
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)

WAITERS = 60
THREADS = 2
LIMITS = {
    "PITWALL_WAITS_A_TOKEN": str(WAITERS),
    "PITWALL_WAITS_A_TEAM": str(WAITERS + 1),
    "PITWALL_WAITS_A_PROCESS": str(WAITERS + 2),
}


@pytest.fixture
def personas() -> Personas:
    return make_personas()


@pytest.fixture
def run(world: World) -> Run:
    return world.queue_run()


@pytest.fixture
def token(personas: Personas) -> str:
    return create_token(member=personas.alice, name="ci").secret


@pytest.fixture(scope="module")
def server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with served(folder, threads=THREADS, environment=LIMITS) as server:
        yield server


def wait_for(server: Served, run: Run, token: str, seconds: float = 60) -> Pending:
    return server.send(f"/api/v1/runs/{run.pk}?wait={seconds}", token=token)


def set_state(run: Run, state: RunState) -> None:
    Run.objects.filter(pk=run.pk).update(state=state)


def all_wait(server: Served, run: Run, token: str) -> list[Pending]:
    """As many as may, once the server has set all of them aside."""
    waiting = [wait_for(server, run, token) for _ in range(WAITERS)]
    while True:
        is_full = wait_for(server, run, token, 0.1).answer()[0].headers["Retry-After"] is not None
        # One whose place this question had is asked again.
        refused = [each for each in waiting if each.has_answer()]
        if is_full and not refused:
            return waiting
        for each in refused:
            each.kill()
        waiting = [each for each in waiting if each not in refused]
        waiting += [wait_for(server, run, token) for _ in refused]


def test_many_long_polls_wait_while_pages_respond_and_all_get_the_change(
    server: Served, run: Run, token: str
) -> None:
    waiting = all_wait(server, run, token)
    for _ in range(5):
        assert server.ask("/login", timeout_s=20)[0].status == 200
        assert server.ask("/api/v1/runs", token=token, timeout_s=20)[0].status == 200
    assert not any(each.has_answer() for each in waiting)
    set_state(run, RunState.RUNNING)
    answers = [each.answer() for each in waiting]
    assert {(answer.status, body["state"]) for answer, body in answers} == {(200, "running")}
    assert all(answer.headers["RateLimit-Remaining"] for answer, _ in answers)


def test_excess_long_polls_return_immediately_and_killed_clients_free_slots(
    server: Served, run: Run, token: str
) -> None:
    waiting = all_wait(server, run, token)
    answer, body = wait_for(server, run, token).answer()
    assert (answer.status, body["state"], answer.headers["Retry-After"]) == (200, "queued", "5")
    for each in waiting:
        each.kill()
    server.wait_for_connections(0)
    again = all_wait(server, run, token)
    set_state(run, RunState.RUNNING)
    assert {each.answer()[1]["state"] for each in again} == {"running"}


def test_long_polls_are_limited_by_token_and_by_team(
    server: Served, run: Run, token: str, personas: Personas
) -> None:
    waiting = all_wait(server, run, token)
    other = create_token(member=personas.alice, name="other").secret
    answers = [wait_for(server, run, other, 1), wait_for(server, run, other, 1)]
    refused = [each.answer()[0].headers["Retry-After"] for each in answers]
    assert sorted(refused, key=str) == ["5", None]
    assert not any(each.has_answer() for each in waiting)
    set_state(run, RunState.RUNNING)
    assert {each.answer()[1]["state"] for each in waiting} == {"running"}


def test_a_long_poll_ends_at_its_timeout_and_not_with_other_changes(
    server: Served, run: Run, token: str
) -> None:
    pending = wait_for(server, run, token, 1)
    Run.objects.filter(pk=run.pk).update(message="something else")
    answer, body = pending.answer()
    assert (answer.status, body["state"]) == (200, "queued")


def test_an_ended_run_is_returned_immediately(server: Served, run: Run, token: str) -> None:
    set_state(run, RunState.CANCELLED)
    answer, body = wait_for(server, run, token, 60).answer()
    assert (body["state"], answer.headers["Retry-After"]) == ("cancelled", None)


def test_changes_arrive_over_a_new_connection_to_postgresql(
    server: Served, run: Run, token: str
) -> None:
    waiting = all_wait(server, run, token)
    with psycopg.connect(own_database_url(), autocommit=True) as other:
        ended = other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'pitwall-listener' AND datname = current_database()"
        ).fetchall()
    assert ended == [(True,)]
    set_state(run, RunState.RUNNING)
    assert {each.answer()[1]["state"] for each in waiting} == {"running"}


def test_long_polls_are_answered_when_the_server_stops(
    run: Run, token: str, tmp_path: Path
) -> None:
    with served(tmp_path, threads=THREADS, environment=LIMITS) as server:
        waiting = all_wait(server, run, token)
        # With it, some of them are in a thread when the server stops.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(run.pk)])
        time.sleep(0.05)
        os.kill(server.worker(), signal.SIGTERM)
        answers = [each.answer() for each in waiting]
    assert {(answer.status, body["state"]) for answer, body in answers} == {(200, "queued")}
    assert {answer.headers["Connection"] for answer, _ in answers} == {"close"}
