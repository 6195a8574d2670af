"""A small HTTP/1.1 server that answers in turns, whatever it is asked.

    python cycling.py ANSWER...

prints its port and serves on 127.0.0.1 until it is killed. The n-th request gets the n-th ANSWER,
and then from the first on again:

    200, 503, …   that status, with 5 bytes     drop   the connection ends instead
    late          200 after 1.2 s               echo   what was asked, as it came
    never         nothing
"""

import asyncio
import itertools
import sys
from collections.abc import Iterator
from typing import Any

LATE_S = 1.2


class Connection(asyncio.Protocol):
    def __init__(self, answers: Iterator[str]) -> None:
        self._answers = answers
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            lines = self._buffer[:end].decode("latin-1").lower().split("\r\n")
            fields = dict(line.split(": ", 1) for line in lines[1:])
            stop = end + 4 + int(fields.get("content-length", 0))
            if len(self._buffer) < stop:
                return
            request, self._buffer = self._buffer[:stop], self._buffer[stop:]
            self._answer(request, fields.get("connection") == "close")

    def _answer(self, request: bytes, closing: bool) -> None:
        kind = next(self._answers)
        if kind == "drop":
            self._transport.close()
        elif kind == "late":
            asyncio.get_running_loop().call_later(LATE_S, self._send, 200, b"hello", closing)
        elif kind == "echo":
            self._send(200, request, closing)
        elif kind != "never":
            self._send(int(kind), b"hello", closing)

    def _send(self, status: int, body: bytes, closing: bool) -> None:
        last = b"connection: close\r\n" if closing else b""
        self._transport.write(
            b"HTTP/1.1 %d Said\r\n%scontent-length: %d\r\n\r\n%s" % (status, last, len(body), body)
        )
        if closing:
            self._transport.close()


async def main() -> None:
    answers = itertools.cycle(sys.argv[1:])
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(answers), "127.0.0.1", 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
