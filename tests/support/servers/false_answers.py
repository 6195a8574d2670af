"""A server of HTTP/1.1 and gRPC without TLS that gives one kind of false answer under load.

`character`, a file in its folder or an argument, is `liar` or `honest`. Under load means more than
two open connections, so that single requests get the truth. Each answer returns the x-request-id of
its request. The packages of the tests are needed for gRPC only.
"""

import argparse
import asyncio
import time
from pathlib import Path

BODIES = {"/": b"Hello, World!", "/item": b"item 7"}
#: A gRPC message: not compressed, 7 bytes long; field 1 is the text.
MESSAGE = b"\x00\x00\x00\x00\x07\x0a\x05Hello"
OTHER_MESSAGE = MESSAGE.replace(b"Hello", b"Adieu")
FIRST_TAKES_S = 0.3


class Server:
    """The base of all kinds: it answers correctly."""

    def __init__(self):
        self.open = 0
        self.last_id = ""

    @property
    def is_loaded(self):
        return self.open > 2

    def answer(self, path, request_id):
        """Return headers and body."""
        return {"x-request-id": request_id}, BODIES[path]

    def message(self):
        return MESSAGE

    async def talk(self, reader, writer):
        self.open += 1
        try:
            first = await reader.readexactly(4)
            await (self.talk_h2 if first == b"PRI " else self.talk_h1)(first, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def talk_h1(self, first, reader, writer):
        while True:
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first = b""
            path = head.split(" ", 2)[1]
            headers = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)
            own, body = self.answer(path, headers.get("x-request-id", ""))
            own = {"content-type": "text/plain", "content-length": len(body), **own}
            lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in own.items())]
            writer.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body)
            if own.get("connection") == "close":
                return

    async def talk_h2(self, first, reader, writer):
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import DataReceived, StreamEnded

        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        data = first
        while True:
            for event in connection.receive_data(data):
                if isinstance(event, DataReceived):
                    size = event.flow_controlled_length
                    connection.acknowledge_received_data(size, event.stream_id)
                elif isinstance(event, StreamEnded):
                    head = [(":status", "200"), ("content-type", "application/grpc")]
                    connection.send_headers(event.stream_id, head)
                    connection.send_data(event.stream_id, self.message())
                    end = [("grpc-status", "0")]
                    connection.send_headers(event.stream_id, end, end_stream=True)
            writer.write(connection.data_to_send())
            data = await reader.read(1 << 16)
            if not data:
                return


class Replacing(Server):
    """Another body of the same length, over gRPC another message."""

    def answer(self, path, request_id):
        headers, body = super().answer(path, request_id)
        return headers, body if not self.is_loaded else b"x" * len(body)

    def message(self):
        return OTHER_MESSAGE if self.is_loaded else MESSAGE


class Shortening(Server):
    """A shorter body."""

    def answer(self, path, request_id):
        headers, body = super().answer(path, request_id)
        return headers, body[:3] if self.is_loaded else body


class Closing(Server):
    """The connection ends after the answer."""

    def answer(self, path, request_id):
        headers, body = super().answer(path, request_id)
        return {**headers, **({"connection": "close"} if self.is_loaded else {})}, body


class Mixing(Server):
    """The answer to the request before, which may be of another connection."""

    def answer(self, path, request_id):
        self.last_id, last_id = request_id, self.last_id
        return super().answer(path, last_id if self.is_loaded else request_id)


class Forgetting(Server):
    """The same answer to every path."""

    def answer(self, path, request_id):
        return super().answer("/" if self.is_loaded else path, request_id)


class Caching(Server):
    """Only the first answer takes its time, with load or without."""

    is_cached = False

    def answer(self, path, request_id):
        if not self.is_cached:
            time.sleep(FIRST_TAKES_S)
            self.is_cached = True
        return super().answer(path, request_id)


KINDS = {
    "replaces": Replacing,
    "shortens": Shortening,
    "closes": Closing,
    "mixes": Mixing,
    "forgets": Forgetting,
    "caches": Caching,
}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--lie", choices=KINDS, required=True)
    parser.add_argument("--character", choices=("liar", "honest"))
    given = parser.parse_args()
    character = given.character or Path("character").read_text().strip()
    kind = KINDS[given.lie] if character == "liar" else Server
    server = await asyncio.start_server(kind().talk, "127.0.0.1", given.port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
