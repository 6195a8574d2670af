"""A small server that load tools are tried on: HTTP/1.1, HTTP/2 (prior knowledge or ALPN) and gRPC.

    python target.py [--tls CERT KEY] [--freeze SECONDS EVERY] [--slow-first N]

prints its port and serves on 127.0.0.1 until it is killed. `--freeze 0.2 2.2`: everything stands
still for 0.2 s every 2.2 s. `--slow-first N`: the first N requests take 200 ms.

    /hello                      13 bytes          /chunked    the same without a content-length
    /status/<n>                 that status       /echo       method, header x and body as JSON
    /hang                       no answer         /close      the connection ends instead
    helloworld.Greeter/SayHello   unary; SayHelloCS, SayHelloServer and SayHelloBidi stream;
    the name "code 5" is answered with that gRPC status, "hang" never
"""

import argparse
import asyncio
import json
import ssl
import time
from collections.abc import Callable
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, StreamEnded

HELLO = b"Hello, World!"
SLOW_S = 0.2


class Target:
    """What all connections share."""

    def __init__(self, slow_first: int) -> None:
        self._left = slow_first

    def later(self, act: Callable[[], None]) -> None:
        """Answer now, or later while the server is still slow."""
        self._left -= 1
        if self._left < 0:
            act()
        else:
            asyncio.get_running_loop().call_later(SLOW_S, act)


class Connection(asyncio.Protocol):
    """Finds out which protocol is spoken and hands over to it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._spoken: Http1 | Http2 | None = None
        self._first = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._spoken is None:
            self._first += data
            if len(self._first) < 4:
                return
            data = self._first
            kind = Http2 if data.startswith(b"PRI ") else Http1
            self._spoken = kind(self._target, self._transport)
        self._spoken.feed(data)


def answer(method: str, path: str, x: str, body: bytes) -> tuple[int, bytes] | None:
    """Status and body; None where nothing is ever answered."""
    if path == "/hang":
        return None
    if path.startswith("/status/"):
        return int(path.removeprefix("/status/")), b"no"
    if path == "/echo":
        return 200, json.dumps([method, x, body.decode()]).encode()
    return 200, HELLO


class Http1:
    def __init__(self, target: Target, transport: Any) -> None:
        self._target, self._transport, self._buffer = target, transport, b""

    def feed(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            lines = self._buffer[:end].decode("latin-1").split("\r\n")
            fields = {name.lower(): text for name, _, text in (x.partition(": ") for x in lines)}
            stop = end + 4 + int(fields.get("content-length", 0))
            if len(self._buffer) < stop:
                return
            body, self._buffer = self._buffer[end + 4 : stop], self._buffer[stop:]
            self._answer(*lines[0].split(" ")[:2], fields.get("x", ""), body)

    def _answer(self, method: str, path: str, x: str, body: bytes) -> None:
        response = answer(method, path, x, body)
        if path == "/close":
            self._transport.close()
        elif response is not None:
            status, text = response
            length = b"content-length: %d\r\n\r\n%s" % (len(text), text)
            if path == "/chunked":
                length = b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (
                    len(text), text,
                )  # fmt: skip
            whole = b"HTTP/1.1 %d Said\r\n%s" % (status, length)
            self._target.later(lambda: self._transport.write(whole))


class Http2:
    def __init__(self, target: Target, transport: Any) -> None:
        self._target, self._transport = target, transport
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._h2.initiate_connection()
        self._requests: dict[int, tuple[dict[str, str], bytearray]] = {}
        self._flush()

    def feed(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            self._take(event)
        self._flush()

    def _flush(self) -> None:
        self._transport.write(self._h2.data_to_send())

    def _take(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._requests[event.stream_id] = (dict(event.headers), bytearray())
        elif isinstance(event, DataReceived):
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if event.stream_id in self._requests:
                self._requests[event.stream_id][1].extend(event.data)
        elif isinstance(event, StreamEnded) and event.stream_id in self._requests:
            fields, body = self._requests.pop(event.stream_id)
            self._answer(event.stream_id, fields, bytes(body))

    def _answer(self, stream: int, fields: dict[str, str], body: bytes) -> None:
        path = fields[":path"]
        if fields.get("content-type", "").startswith("application/grpc"):
            self._target.later(lambda: self._call(stream, path, body))
            return
        response = answer(fields[":method"], path, fields.get("x", ""), body)
        if response is not None:
            self._target.later(lambda: self._send(stream, *response))

    def _send(self, stream: int, status: int, text: bytes) -> None:
        fields = [(":status", str(status)), ("content-length", str(len(text)))]
        self._h2.send_headers(stream, fields)
        self._h2.send_data(stream, text, end_stream=True)
        self._flush()

    def _call(self, stream: int, path: str, body: bytes) -> None:
        names = messages(body)
        if "hang" in names:
            return
        code = next((name[5:] for name in names if name.startswith("code ")), "0")
        self._h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        if code == "0":
            for reply in _replies(path.rpartition("/")[2], names):
                self._h2.send_data(stream, message("Hello " + reply))
        self._h2.send_headers(
            stream, [("grpc-status", code), ("grpc-message", "as asked")], end_stream=True
        )
        self._flush()


def _replies(call: str, names: list[str]) -> list[str]:
    if call == "SayHelloCS":
        return [", ".join(names)]
    return names * 3 if call == "SayHelloServer" else names


def message(text: str) -> bytes:
    """A message whose field 1 is this short text, in gRPC's frame."""
    data = b"\x0a%c%s" % (len(text), text.encode())
    return b"\0" + len(data).to_bytes(4, "big") + data


def messages(body: bytes) -> list[str]:
    texts = []
    while body:
        size = int.from_bytes(body[1:5], "big")
        texts.append(body[7 : 5 + size].decode())
        body = body[5 + size :]
    return texts


async def _freeze(seconds: float, every: float) -> None:
    while True:
        await asyncio.sleep(every - seconds)
        time.sleep(seconds)


async def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--tls", nargs=2)
    words.add_argument("--freeze", nargs=2, type=float)
    words.add_argument("--slow-first", type=int, default=0)
    options = words.parse_args()
    context = None
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*options.tls)
        context.set_alpn_protocols(["h2", "http/1.1"])
    target = Target(options.slow_first)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(target), "127.0.0.1", 0, ssl=context
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    if options.freeze:
        await _freeze(*options.freeze)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
