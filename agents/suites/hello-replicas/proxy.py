"""A small proxy that distributes connections to its servers in turn.

python3 proxy.py --port 8080 --to 127.0.0.1:8081,127.0.0.1:8082
"""

import argparse
import asyncio
from itertools import cycle

LARGEST_READ = 16 * 1024


class Half(asyncio.BufferedProtocol):
    """One side of a connection: received data is written to the other side.

    It has a separate buffer: asyncio's plain protocols allocate 256 KiB for each read.
    """

    def __init__(self, other=None):
        self.other = other
        self.buffer = bytearray(LARGEST_READ)

    def connection_made(self, transport):
        self.transport = transport

    def get_buffer(self, _size_hint):
        return self.buffer

    def buffer_updated(self, size):
        self.other.transport.write(self.buffer[:size])

    def connection_lost(self, _error):
        if self.other is not None:
            self.other.transport.close()

    def pause_writing(self):
        self.other.transport.pause_reading()

    def resume_writing(self):
        self.other.transport.resume_reading()


class Client(Half):
    """The client's side; it is read only when the server is connected."""

    def __init__(self, servers):
        super().__init__()
        self.servers = servers
        self.early = b""

    def connection_made(self, transport):
        super().connection_made(transport)
        transport.pause_reading()
        self.joining = asyncio.ensure_future(self.join(next(self.servers)))

    def buffer_updated(self, size):
        if self.other is None:
            # Older versions of asyncio read although connection_made has paused it.
            self.early += bytes(self.buffer[:size])
            self.transport.pause_reading()
        else:
            super().buffer_updated(size)

    async def join(self, server):
        loop = asyncio.get_running_loop()
        try:
            _, self.other = await loop.create_connection(lambda: Half(self), *server)
        except OSError:
            self.transport.close()
        else:
            self.other.transport.write(self.early)
            self.transport.resume_reading()


async def serve(address, port, servers):
    loop = asyncio.get_running_loop()
    turn = cycle(servers)
    server = await loop.create_server(lambda: Client(turn), address, port, backlog=1024)
    async with server:
        await server.serve_forever()


def places(text):
    """Parse `host:port,host:port` as pairs."""
    pairs = (place.rpartition(":") for place in text.split(","))
    return [(host.strip("[]"), int(port)) for host, _, port in pairs]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--to", type=places, required=True, metavar="HOST:PORT,…")
    given = parser.parse_args()
    asyncio.run(serve(given.bind, given.port, given.to))
