"""The line between two hosts: only the job's own, and each message once, in order, unchanged."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from agents.hostagent.errors import PeerLost
from agents.hostagent.hosts import listener, secure_channel
from agents.hostagent.hosts.follower_connection import FollowerConnection, connect
from agents.hostagent.hosts.listener import FollowerListener
from agents.hostagent.hosts.secure_channel import (
    FOLLOWER,
    LEAD,
    Channel,
    Handshake,
    LineBuffer,
    build_scope,
)
from agents.hostagent.step.plan import Host

SECRET = "5e" * 32
SCOPE = build_scope("j1", "a1-r1", "b")
Line = Callable[[bytes], bytes]


@pytest.fixture
def wire() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def shaken(secret: str = SECRET, place: str = SCOPE) -> tuple[Handshake, Handshake]:
    """Lead and follower after both have greeted; the lead may have other ideas of the job."""
    lead, follower = Handshake(secret, place, LEAD), Handshake(SECRET, SCOPE, FOLLOWER)
    follower.read_greeting(lead.greeting())
    lead.read_greeting(follower.greeting())
    return lead, follower


def test_both_sides_prove_that_they_know_the_secret() -> None:
    lead, follower = shaken()
    follower.check(lead.proof())
    lead.check(follower.proof())


@pytest.mark.parametrize(
    ("secret", "place"),
    [
        ("57" * 32, SCOPE),
        (SECRET, build_scope("j1", "a1-r1", "c")),
        (SECRET, build_scope("j2", "a1-r1", "b")),
    ],
    ids=["another secret", "another host", "another job"],
)
def test_secure_channel_refuses_another_job_or_host(secret: str, place: str) -> None:
    lead, follower = shaken(secret, place)
    with pytest.raises(PeerLost):
        follower.check(lead.proof())
    with pytest.raises(PeerLost):
        lead.check(follower.proof())


def test_secure_channel_refuses_a_reflected_proof() -> None:
    lead, follower = shaken()
    with pytest.raises(PeerLost):
        lead.check(lead.proof())
    with pytest.raises(PeerLost):
        follower.check(follower.proof())


def test_secure_channel_refuses_a_replayed_proof() -> None:
    earlier, _ = shaken()
    _, follower = shaken()
    with pytest.raises(PeerLost):
        follower.check(earlier.proof())


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"GET / HTTP/1.1", b"[1]", b'{"nonce": 5}', b'{"nonce": "zz"}', b"\xff"]
)
def test_secure_channel_refuses_an_invalid_opening(line: bytes) -> None:
    with pytest.raises(PeerLost):
        Handshake(SECRET, SCOPE, FOLLOWER).read_greeting(line)


def channels(left: socket.socket, right: socket.socket) -> tuple[Channel, Channel]:
    lead, follower = shaken()
    return lead.channel(left), follower.channel(right)


def test_secure_channel_carries_messages_both_ways(
    wire: tuple[socket.socket, socket.socket],
) -> None:
    lead, follower = channels(*wire)
    for n in range(3):
        lead.send({"call": "ping", "n": n, "text": "größer\n"})
        assert follower.receive(1) == {"call": "ping", "n": n, "text": "größer\n"}
        follower.send({"answer": {}})
        assert lead.receive(1) == {"answer": {}}
    assert lead.receive(0) is None


TAMPERING: dict[str, Line] = {
    "changed": lambda line: line.replace(b"stop", b"kill"),
    "repeated": lambda line: line + line,
    "unsealed": lambda line: line.split(b" ", 1)[1],
    "emptied": lambda line: b"\n",
    "cut": lambda line: line[:70] + b"\n",
}


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING)
def test_secure_channel_refuses_messages_out_of_order(tamper: Line) -> None:
    captured, relay = socket.socketpair()
    near, far = socket.socketpair()
    with captured, relay, near, far:
        lead, follower = channels(captured, far)
        lead.send({"call": "stop"})
        near.sendall(tamper(relay.recv(1000)))
        if tamper is TAMPERING["repeated"]:
            assert follower.receive(1) == {"call": "stop"}
        with pytest.raises(PeerLost, match="not authentic"):
            follower.receive(1)


def test_secure_channel_refuses_dropped_and_replayed_messages() -> None:
    captured, relay = socket.socketpair()
    near, far = socket.socketpair()
    with captured, relay, near, far:
        lead, follower = channels(captured, far)
        lead.send({"call": "ping"})
        first = relay.recv(1000)
        lead.send({"call": "stop"})
        near.sendall(relay.recv(1000))
        with pytest.raises(PeerLost):
            follower.receive(1)
        relay.sendall(first)  # what it said itself is no answer
        with pytest.raises(PeerLost):
            lead.receive(1)


def test_secure_channel_detects_a_closed_connection(
    wire: tuple[socket.socket, socket.socket],
) -> None:
    lead, _ = channels(*wire)
    wire[1].close()
    with pytest.raises(PeerLost, match="closed"):
        lead.receive(1)


def test_secure_channel_limits_the_length_of_lines() -> None:
    lines = LineBuffer(10)
    lines.add(b"a\nbc")
    assert [lines.next(), lines.next()] == [b"a", None]
    lines.add(b"d\n")
    assert lines.next() == b"bcd"
    lines.add(b"x" * 11)
    with pytest.raises(PeerLost, match="too long"):
        lines.next()


@pytest.fixture
def open_door(monkeypatch: pytest.MonkeyPatch) -> FollowerListener:
    monkeypatch.setattr(listener, "HANDSHAKE_S", 0.3)
    return FollowerListener("127.0.0.1", SECRET, SCOPE)


def ping(peer: FollowerConnection) -> dict[str, object]:
    return peer.call("ping", lambda: None)


def answer_one(channel: Channel) -> None:
    while channel.receive(1) is None:
        pass
    channel.send({"answer": {"it": "is me"}})


def test_listener_accepts_the_lead_despite_other_clients(open_door: FollowerListener) -> None:
    here = ("127.0.0.1", open_door.port)
    strangers = [socket.create_connection(here) for _ in range(listener.MAX_PENDING + 3)]
    strangers[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
    strangers[1].sendall(b"x" * 5000)
    strangers[2].sendall(Handshake("57" * 32, SCOPE, LEAD).greeting())
    with ThreadPoolExecutor() as pool:
        admitted = pool.submit(open_door.accept_lead, lambda: None)
        peer = connect("b", Host("127.0.0.1", open_door.port), SECRET, SCOPE)
        channel = admitted.result()
        answering = pool.submit(answer_one, channel)
        assert ping(peer) == {"it": "is me"}
        answering.result()
    for stranger in strangers:  # all were shown out
        stranger.settimeout(5)
        assert _rest(stranger) == b""
        stranger.close()
    with pytest.raises(OSError, match="refused"):  # and nobody else comes in
        socket.create_connection(here)
    peer.close()
    channel.close()


def _rest(connection: socket.socket) -> bytes:
    """What is left behind a greeting once the other side has closed."""
    data = b""
    try:
        while part := connection.recv(1000):
            data += part
    except ConnectionError:
        return b""
    return data.partition(b"\n")[2]


def test_listener_closes_a_silent_connection(open_door: FollowerListener) -> None:
    with (
        ThreadPoolExecutor() as pool,
        socket.create_connection(("127.0.0.1", open_door.port)) as pending,
    ):
        admitted = pool.submit(open_door.accept_lead, lambda: None)
        pending.settimeout(10)
        assert pending.recv(10) == b""
        peer = connect("b", Host("127.0.0.1", open_door.port), SECRET, SCOPE)
        admitted.result().close()
        peer.close()


def test_listener_names_the_host_that_does_not_know_the_secret(open_door: FollowerListener) -> None:
    with ThreadPoolExecutor() as pool:
        admitted = pool.submit(open_door.accept_lead, lambda: None)
        with pytest.raises(PeerLost, match=r"agent of host b \(127\.0\.0\.1:\d+\): "):
            connect("b", Host("127.0.0.1", open_door.port), "57" * 32, SCOPE)
        peer = connect("b", Host("127.0.0.1", open_door.port), SECRET, SCOPE)
        admitted.result().close()
        peer.close()


def test_secure_channel_limits_the_size_of_a_message(
    wire: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secure_channel, "MAX_LINE", 1000)
    lead, follower = channels(*wire)
    lead.send({"text": "x" * 2000})
    with pytest.raises(PeerLost, match="too long"):
        follower.receive(1)
