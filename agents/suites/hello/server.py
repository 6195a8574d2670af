"""A plain HTTP/1.1 server in one file: `GET /hello` answers "Hello, World!".

    python3 server.py --port 8080

It reads every header and dates every response, as servers do. WORK is the number of hashes per
request in addition: enough for the server, and not the load generator, to be the limit.
"""

import argparse
import asyncio
import hashlib
import io
import socket
from email.utils import formatdate
from http import HTTPStatus
from http.client import parse_headers

WORK = 50

LARGEST_HEAD = 16 * 1024


def work(rounds):
    digest = b"pitwall"
    for _ in range(rounds):
        digest = hashlib.sha256(digest).digest()
    return digest


def parse(head):
    """Return the method, the path without its query, and the headers of a request."""
    first, _, rest = head.partition(b"\r\n")
    method, _, target = first.decode("latin-1").partition(" ")
    path = target.partition(" ")[0].partition("?")[0]
    return method, path, parse_headers(io.BytesIO(rest + b"\r\n\r\n"))


def respond(status, body, *, close=False):
    headers = {
        "Date": formatdate(usegmt=True),
        "Server": "hello",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": len(body),
        "Connection": "close" if close else "keep-alive",
    }
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status.value} {status.phrase}", *lines, "", ""])
    return head.encode("latin-1") + body


def answer(head):
    """Return the whole response to a request, and whether the connection ends with it."""
    method, path, headers = parse(head)
    close = headers.get("Connection", "").lower() == "close"
    if method != "GET" or path != "/hello":
        return respond(HTTPStatus.NOT_FOUND, b"not here", close=close), close
    work(WORK)
    return respond(HTTPStatus.OK, b"Hello, World!", close=close), close


class Connection(asyncio.BufferedProtocol):
    """Answers the requests of one connection in order; they have no bodies.

    It reads into a separate buffer. asyncio's plain protocols allocate 256 KiB for each read, which
    glibc maps and unmaps each time until the first connection has closed. Until then the same
    server would be a third slower.
    """

    def connection_made(self, transport):
        self.transport = transport
        self.buffer = bytearray(LARGEST_HEAD)
        self.unread = b""
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, _size_hint):
        return self.buffer

    def buffer_updated(self, size):
        *heads, self.unread = (self.unread + self.buffer[:size]).split(b"\r\n\r\n")
        for head in heads:
            response, close = answer(head)
            self.transport.write(response)
            if close:
                self.transport.close()
                return
        if len(self.unread) > LARGEST_HEAD:
            self.transport.write(respond(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, b""))
            self.transport.close()


async def serve(address, port):
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, address, port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    asyncio.run(serve(given.bind, given.port))
