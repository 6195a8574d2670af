"""Redis forgets everything and is away for a while: PostgreSQL knows what there is to do."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.chaos.own_servers import OwnServer, own_redis
from tests.support.engine import Engine, running_engine
from tests.support.factories import Personas
from tests.support.faults import FULL, ask_for_several, assert_all_finish, wait_for_a_measurement
from tests.support.netns import NamespaceHost

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

DOWN_S = 20 if FULL else 3


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[OwnServer]:
    with own_redis(tmp_path) as server:
        yield server


@pytest.fixture
def engine(hosts: list[NamespaceHost], queue: OwnServer, tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path, REDIS_URL=queue.url) as running:
        yield running


def test_jobs_survive_a_flushed_and_restarted_redis(
    engine: Engine, hosts: list[NamespaceHost], team: Personas, shas: list[str], queue: OwnServer
) -> None:
    runs = ask_for_several(team, shas)
    wait_for_a_measurement(engine, hosts)
    with redis.Redis(unix_socket_path=str(queue.sockets / "redis.sock")) as client:
        client.flushall()
    queue.kill()
    time.sleep(DOWN_S)
    queue.start()
    assert_all_finish(engine, hosts, runs)
