"""PostgreSQL stops what takes too long for a page, and nothing of an operator's commands."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.db import connection, connections

from orchestrator.accounts.services import create_token
from orchestrator.config import variables
from orchestrator.operations.database_limits import LIMITS, limit_sessions
from tests.support.engine import own_database_url
from tests.support.factories import make_personas
from tests.support.served import Served, served

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Those of new connections, for this test."""
    options = dict(connections.settings["default"]["OPTIONS"])
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", options)
    return options


def read_session_parameters() -> dict[str, str]:
    new = connections.create_connection("default")
    try:
        with new.cursor() as cursor:
            cursor.execute("SELECT name, current_setting(name) FROM pg_settings")
            return dict(cursor.fetchall())
    finally:
        new.close()


@pytest.mark.parametrize("process", LIMITS)
def test_sessions_of_a_process_have_limits(process: str, options: dict[str, object]) -> None:
    for name in LIMITS[process]:
        assert read_session_parameters()[name] == "0", "a command has none"
    limit_sessions(process)
    limit_sessions(process)
    parameters = read_session_parameters()
    assert {name: parameters[name] for name in LIMITS[process]} == LIMITS[process]


def test_database_url_takes_precedence(options: dict[str, object]) -> None:
    url = "postgresql://h/d?connect_timeout=9&options=-c%20statement_timeout%3D5s"
    given = variables.parse_database_url(url)["OPTIONS"]
    assert isinstance(given, dict)
    assert (given["connect_timeout"], given["tcp_user_timeout"]) == ("9", 30_000)
    options["options"] = given["options"]
    limit_sessions("web")
    parameters = read_session_parameters()
    assert (parameters["statement_timeout"], parameters["lock_timeout"]) == ("5s", "10s")


def test_a_vanished_server_is_detected_within_half_a_minute() -> None:
    connection.ensure_connection()
    parameters = connection.connection.info.get_parameters()
    assert (parameters["connect_timeout"], parameters["tcp_user_timeout"]) == ("5", "30000")
    idle, every, count = (
        int(parameters[f"keepalives_{name}"]) for name in ("idle", "interval", "count")
    )
    assert idle + every * count <= 30


@pytest.fixture(params=["statement_timeout", "lock_timeout"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    options = quote(f"-c {request.param}=300ms")
    url = f"{own_database_url()}&options={options}"
    with served(tmp_path, environment={"DATABASE_URL": url}) as server:
        yield server


def test_a_statement_that_was_stopped_is_explained(server: Served) -> None:
    token = create_token(member=make_personas().alice, name="ci").secret
    with psycopg.connect(own_database_url()) as other:
        other.execute("LOCK TABLE runs_run, accounts_user IN ACCESS EXCLUSIVE MODE")
        answer, body = server.ask("/api/v1/runs", token=token)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert b"the database stopped this request at its time limit" in body
    assert server.ask("/api/v1/runs", token=token)[0].status == 200
