"""Connections are kept open between uses, by one user at a time."""

import pytest

from orchestrator.core.errors import UnreachableError
from orchestrator.dispatch.connections import Connections
from orchestrator.fleet.models import Host
from orchestrator.transport.fake import FakeTransport


class Line:
    """Opens fakes and keeps them."""

    def __init__(self) -> None:
        self.opened: list[FakeTransport] = []

    def __call__(self, _host: Host) -> FakeTransport:
        self.opened.append(FakeTransport())
        return self.opened[-1]


@pytest.fixture
def line() -> Line:
    return Line()


def host(**changes: object) -> Host:
    return Host(**{"name": "a", "address": "10.0.0.1", "state": "ready", **changes})


def test_pool_reuses_an_open_connection(line: Line) -> None:
    connections, one = Connections(open_=line), host()
    for _ in range(3):
        with connections.to(one):
            pass
    assert len(line.opened) == 1
    assert line.opened[0].is_open()


def test_pool_gives_a_connection_to_one_user_at_a_time(line: Line) -> None:
    connections, one = Connections(open_=line), host()
    with connections.to(one) as first, connections.to(one) as second:
        assert first is not second


def test_pool_does_not_reuse_a_failed_connection(line: Line) -> None:
    connections, one = Connections(open_=line), host()
    with pytest.raises(UnreachableError), connections.to(one):
        raise UnreachableError("gone")
    assert not line.opened[0].is_open()
    with connections.to(one):
        pass
    assert len(line.opened) == 2


def test_pool_replaces_an_ended_connection(line: Line) -> None:
    connections, one = Connections(open_=line), host()
    with connections.to(one):
        pass
    line.opened[0].close()
    with connections.to(one) as second:
        assert second is line.opened[1]


def test_pool_opens_a_new_connection_when_ssh_settings_change(line: Line) -> None:
    connections, one = Connections(open_=line), host()
    with connections.to(one):
        pass
    one.address = "10.0.0.2"
    with connections.to(one) as second:
        assert second is line.opened[1]


def test_pool_closes_idle_connections(line: Line) -> None:
    connections = Connections(open_=line, idle_s=-1.0)
    with connections.to(host()):
        pass
    with connections.to(host(name="b")):
        pass
    assert not line.opened[0].is_open()


def test_pool_closes_all_connections_at_the_end(line: Line) -> None:
    connections = Connections(open_=line)
    with connections.to(host()):
        pass
    connections.close_all()
    assert not line.opened[0].is_open()


def test_pool_keeps_a_connection_to_each_host_of_a_large_fleet(line: Line) -> None:
    connections, hosts = (
        Connections(open_=line, most_idle=1000),
        [host(name=str(n)) for n in range(1000)],
    )
    for _ in range(2):
        for one in hosts:
            with connections.to(one):
                pass
    assert len(line.opened) == 1000


def test_pool_has_a_limit(line: Line) -> None:
    connections = Connections(open_=line, most_idle=2)
    for name in "abcd":
        with connections.to(host(name=name)):
            pass
    assert [each.is_open() for each in line.opened] == [False, True, True, True]
    with connections.to(host(name="e")):
        pass
    assert [each.is_open() for each in line.opened] == [False, False, True, True, True]
