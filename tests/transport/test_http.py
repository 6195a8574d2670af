"""Requests to addresses that somebody typed: where they may go, and how much they may cost."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.transport.http import (
    DeliveryError,
    ForbiddenAddressError,
    check_web_address,
    is_internal,
    send,
)
from tests.support.http_servers import receiving

HERE = ["127.0.0.0/8"]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::",
        "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
    ],
)  # fmt: skip
def test_internal_addresses_are_recognised(address: str) -> None:
    assert is_internal(ip_address(address))


@pytest.mark.parametrize("address", ["140.82.121.4", "2606:50c0:8000::153", "64:ff9b::8c52:7904"])
def test_public_addresses_are_recognised(address: str) -> None:
    assert not is_internal(ip_address(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]"])
def test_this_machine_cannot_be_reached(host: str) -> None:
    with receiving() as receiver:
        url = receiver.url.replace("127.0.0.1", host)
        with pytest.raises(ForbiddenAddressError, match="PITWALL_ALLOWED_INTERNAL_NETWORKS"):
            send("POST", url, headers={})

        assert receiver.got == []


def test_the_request_goes_to_the_checked_address(monkeypatch: Any) -> None:
    lookups = []
    real = socket.getaddrinfo

    def resolve(host: str, port: int, *args: Any, **more: Any) -> Any:
        lookups.append(host)
        # A name that is public when it is checked, and internal a moment later.
        address = "127.0.0.1" if len(lookups) == 1 else "127.0.0.99"
        return real(address if host == "rebind.example" else host, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with receiving() as receiver:
        url = receiver.url.replace("127.0.0.1", "rebind.example")
        answer = send("POST", url, body=b"hi", headers={}, allowed=["127.0.0.1/32"])

    assert answer.status == 200
    assert lookups.count("rebind.example") == 1
    assert receiver.got[0].headers["host"] == url.removeprefix("http://")


def test_a_name_with_one_internal_address_is_refused(monkeypatch: Any) -> None:
    real = socket.getaddrinfo

    def resolve(host: str, port: int, **more: Any) -> Any:
        return [*real("140.82.121.4", port, **more), *real("10.0.0.1", port, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(ForbiddenAddressError, match=r"10\.0\.0\.1"):
        send("GET", "http://both.example/", headers={})


def test_redirects_are_not_followed() -> None:
    with (
        receiving() as inside,
        receiving(answers=[302], headers={"Location": inside.url}) as receiver,
    ):
        answer = send("POST", receiver.url, body=b"hi", headers={}, allowed=HERE)

    assert answer.status == 302
    assert not answer.ok
    assert inside.got == []


def test_a_long_response_is_truncated() -> None:
    with receiving() as receiver:
        answer = send("POST", receiver.url, headers={}, allowed=HERE, most_bytes=20)

    assert len(answer.body) == 20


@contextmanager
def trickling(first: bytes) -> Iterator[int]:
    """A server that sends `first` and then a byte now and then; its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def trickle() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(first)
            while not over.wait(0.05):
                try:
                    connection.sendall(b".")
                except OSError:
                    return

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        thread.join()
        listener.close()


@pytest.mark.parametrize("more", ["", "Connection: close\r\n"])
def test_a_trickling_response_is_cut_off(more: str) -> None:
    with (
        trickling(f"HTTP/1.1 200 OK\r\n{more}Content-Length: 100\r\n\r\n".encode()) as port,
        pytest.raises(DeliveryError, match=r"no whole answer within 0\.3 s"),
    ):
        send("GET", f"http://127.0.0.1:{port}/", headers={}, allowed=HERE, timeout_s=0.3)


def test_a_trickling_handshake_is_cut_off() -> None:
    with (
        trickling(b"\x16\x03\x03\x40\x00") as port,  # A record of 16 KiB.
        pytest.raises(DeliveryError, match=r"no whole answer within 0\.3 s"),
    ):
        send("GET", f"https://127.0.0.1:{port}/", headers={}, allowed=HERE, timeout_s=0.3)


def test_a_resolver_that_does_not_answer_is_within_the_time_limit(monkeypatch: Any) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60) and [])
    try:
        with pytest.raises(DeliveryError, match=r"cannot be resolved: no answer within 0\.2 s"):
            send("GET", "http://slow.example/", headers={}, timeout_s=0.2)
    finally:
        over.set()


def test_other_addresses_of_the_name_are_tried(monkeypatch: Any) -> None:
    real = socket.getaddrinfo

    def resolve(host: str, *more: Any, **words: Any) -> Any:
        # Nothing listens at the first one.
        names = ("127.0.0.9", "127.0.0.1") if host == "both.example" else (host,)
        return [each for name in names for each in real(name, *more, **words)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with receiving() as receiver:
        url = receiver.url.replace("127.0.0.1", "both.example")
        assert send("POST", url, headers={}, allowed=HERE).status == 200


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x.org/", "file:///etc/passwd", "https://", "https://me:pw@x.org/", "http://x:y/",
     "https://x.org/a b", "https://x.org/\r\nHost: y", "//x.org/"],
)  # fmt: skip
def test_an_http_address_is_required(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_web_address(url)
