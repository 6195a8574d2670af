"""Of a connection that a worker had to Redis nothing stays."""

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Queue
from kombu.asynchronous import Hub
from kombu.transport.redis import Transport

from orchestrator.config.celery import app
from tests.chaos.own_servers import own_redis

Connect = Callable[[], Connection]


@pytest.fixture
def hub() -> Iterator[Any]:
    hub = Hub()
    yield hub
    hub.close()


def usual() -> Connection:
    return app.connection_for_read()


def as_kombu_does() -> Connection:
    connection = app.connection_for_read()
    connection.transport_cls = Transport
    return connection


def used_and_closed(hub: Any, connect: Connect) -> Any:
    """A weak reference to the transport of a connection, as a worker has it."""
    connection = connect()
    connection.transport.register_with_event_loop(connection.connection, hub)
    channel = connection.channel()
    channel.client.ping()
    reference = weakref.ref(connection.transport)
    connection.collect()
    return reference


def left(hub: Any, connect: Connect) -> tuple[int, int, int]:
    """Ticks, timers and transports that there still are after three connections."""
    transports = [used_and_closed(hub, connect) for _ in range(3)]
    timers = [entry for *_, entry in hub.timer._queue if not entry.canceled]
    counts = len(hub.on_tick), len(timers)
    hub.timer.clear()
    gc.collect()
    return *counts, sum(each() is not None for each in transports)


def test_a_closed_broker_connection_leaves_no_references(hub: Any) -> None:
    assert left(hub, usual) == (0, 0, 0)


def test_an_open_broker_connection_is_kept(hub: Any) -> None:
    connection = usual()
    connection.transport.register_with_event_loop(connection.connection, hub)
    alone = len(hub.on_tick), len(hub.timer._queue)
    assert left(hub, usual)[:2] == alone
    assert alone > (0, 0)
    connection.close()
    assert not hub.on_tick


def test_the_transport_of_kombu_leaks_connections(hub: Any) -> None:
    """Else there is no need for ours."""
    assert left(hub, as_kombu_does)[0] == 3


def test_a_connection_that_lost_redis_while_waiting_is_not_kept(hub: Any, tmp_path: Path) -> None:
    channel = lost_while_it_waited(hub, tmp_path)
    gc.collect()
    assert channel() is None


def lost_while_it_waited(hub: Any, folder: Path) -> Any:
    """A weak reference to the channel that asked for a message when its Redis was killed."""
    with own_redis(folder) as redis:
        connection = Connection(redis.url)
        connection.transport.register_with_event_loop(connection.connection, hub)
        channel = connection.channel()
        connection.Consumer(Queue("work"), channel=channel).consume()
        for tick in list(hub.on_tick):
            tick()
        assert channel._in_poll
        redis.kill()
        connection.collect()
        hub.reset()  # as a worker does when a connection is lost
        return weakref.ref(channel)
