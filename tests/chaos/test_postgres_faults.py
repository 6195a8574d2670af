"""PostgreSQL dies and comes back: what was committed is known, what was not is done again."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from tests.chaos.own_servers import OwnServer, own_postgres
from tests.support.engine import Engine
from tests.support.factories import Personas, make_personas
from tests.support.faults import FULL, ask_for_several, assert_all_finish, wait_for_a_measurement
from tests.support.netns import NamespaceHost

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

DOWN_S = 20 if FULL else 3


@pytest.fixture
def database(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[OwnServer]:
    with django_db_blocker.unblock(), own_postgres(tmp_path) as server:
        yield server


@pytest.fixture
def team(database: OwnServer) -> Personas:
    return make_personas()


def test_jobs_survive_a_killed_and_restarted_postgresql(
    engine: Engine, hosts: list[NamespaceHost], team: Personas, shas: list[str], database: OwnServer
) -> None:
    runs = ask_for_several(team, shas)
    wait_for_a_measurement(engine, hosts)
    database.kill()
    time.sleep(DOWN_S)
    database.start()
    connection.close()
    assert_all_finish(engine, hosts, runs)
