"""A plain HTTP/1.1 server that reads its response from Redis: `GET /hello`.

    redis-server --port 6379 &
    python3 server.py --port 8080 --redis 127.0.0.1:6379

All requests share one connection to Redis. Redis answers in the order of its queries, so the
callbacks of a client's requests are called in their order, too.
"""

import argparse
import asyncio
from collections import deque
from http import HTTPStatus

LARGEST_READ = 16 * 1024
GREETING = b"Hello, World!"


class Peer(asyncio.BufferedProtocol):
    """Collects received data and passes it to `read`.

    It has a separate buffer: asyncio's plain protocols allocate 256 KiB for each read.
    """

    def __init__(self):
        self.buffer = bytearray(LARGEST_READ)
        self.unread = b""

    def connection_made(self, transport):
        self.transport = transport

    def get_buffer(self, _size_hint):
        return self.buffer

    def buffer_updated(self, size):
        self.unread += self.buffer[:size]
        self.read()


class Redis(Peer):
    """A client of RESP: sends commands, and receives simple and bulk strings."""

    def __init__(self):
        super().__init__()
        self.waiting = deque()

    def ask(self, *words, then):
        """Send a command; `then` gets the bytes of the reply, or None if there is no value."""
        self.waiting.append(then)
        parts = [b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)]
        self.transport.write(b"".join(parts))

    def read(self):
        while (found := reply_in(self.unread)) is not None:
            reply, size = found
            self.unread = self.unread[size:]
            self.waiting.popleft()(reply)

    def connection_lost(self, error):
        raise SystemExit(f"Redis is gone: {error or 'it closed the connection'}")


def reply_in(data):
    """Return the first reply and its length in bytes; None while it is incomplete."""
    head, mark, rest = data.partition(b"\r\n")
    if not mark:
        return None
    if head[:1] == b"-":
        raise SystemExit(f"Redis: {head[1:].decode()}")
    if head[:1] != b"$":
        return head[1:], len(head) + 2
    length = int(head[1:])
    if length < 0:
        return None, len(head) + 2
    if len(rest) < length + 2:
        return None
    return rest[:length], len(head) + length + 4


class Connection(Peer):
    """Answers the requests of one client, which have no bodies."""

    def __init__(self, redis):
        super().__init__()
        self.redis = redis

    def read(self):
        *heads, self.unread = self.unread.split(b"\r\n\r\n")
        for head in heads:
            path = head.partition(b" ")[2].partition(b" ")[0]
            if path == b"/hello":
                self.redis.ask(b"GET", b"greeting", then=self.greet)
            else:
                self.redis.ask(b"PING", then=self.miss)

    def greet(self, value):
        self.respond(HTTPStatus.OK, value)

    def miss(self, _pong):
        self.respond(HTTPStatus.NOT_FOUND, b"not here")

    def respond(self, status, body):
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain\r\n"
        self.transport.write(b"%sContent-Length: %d\r\n\r\n%s" % (head.encode(), len(body), body))


async def serve(address, port, redis_host, redis_port):
    loop = asyncio.get_running_loop()
    _, redis = await loop.create_connection(Redis, redis_host, redis_port)
    stored = loop.create_future()
    redis.ask(b"SET", b"greeting", GREETING, then=stored.set_result)
    await stored
    server = await loop.create_server(lambda: Connection(redis), address, port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--redis", required=True, metavar="HOST:PORT")
    given = parser.parse_args()
    redis_host, _, redis_port = given.redis.rpartition(":")
    asyncio.run(serve(given.bind, given.port, redis_host.strip("[]"), int(redis_port)))
