"""An HTTP/1.1 server that is honest or tells one lie; standard library only.

`character`, a file next to it, contains the name of a lie, or `liar` for the one of the command
line. Most lies are told only under load, which here means more than one open connection: a single
request gets the truth.
"""

import argparse
import asyncio
import time
from pathlib import Path

BODY = b"Hello, World!"


class Server:
    """The base of all lies: it answers correctly."""

    def __init__(self, takes_s):
        self.takes_s = takes_s
        self.open = 0
        self.began = None

    @property
    def loaded_s(self):
        """Return seconds since the first request under load; None without load."""
        if self.began is None and self.open > 1:
            self.began = time.monotonic()
        return None if self.open <= 1 else time.monotonic() - self.began

    async def talk(self, reader, writer):
        self.open += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                status, body = await self.answer()
                head = f"HTTP/1.1 {status} Whatever\r\ncontent-length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def answer(self):
        await self.work()
        return 200, BODY

    async def work(self):
        if self.takes_s:
            await asyncio.sleep(self.takes_s)


class Refusing(Server):
    """Every hundredth answer under load is a 500, which is less work."""

    answered = 0

    async def answer(self):
        self.answered += self.loaded_s is not None
        if self.loaded_s is not None and self.answered % 100 == 0:
            return 500, BODY
        return await super().answer()


class Shortening(Server):
    """Under load only half of the body is sent."""

    async def answer(self):
        status, body = await super().answer()
        return status, body if self.loaded_s is None else body[:5]


class Slowing(Server):
    """After five seconds of load each answer takes three times as long."""

    async def work(self):
        slower = 3 if (self.loaded_s or 0) > 5 else 1
        await asyncio.sleep(self.takes_s * slower)


class Queueing(Server):
    """One worker that needs 5 ms for each answer: 200 a second, whatever the machine."""

    free_at = 0.0

    async def work(self):
        self.free_at = max(self.free_at, time.monotonic()) + 0.005
        await asyncio.sleep(self.free_at - time.monotonic())


class Freezing(Server):
    """For 200 ms of each 2.2 s it does nothing at all."""

    frozen = 0

    async def work(self):
        if self.loaded_s is not None and self.loaded_s > 2.2 * (self.frozen + 1):
            self.frozen += 1
            time.sleep(0.2)


class Late(Server):
    """No request is answered within 300 ms."""

    async def work(self):
        await asyncio.sleep(0.3)


CHARACTERS = {
    "honest": Server,
    "refuses": Refusing,
    "shortens": Shortening,
    "slows": Slowing,
    "queues": Queueing,
    "freezes": Freezing,
    "late": Late,
}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--lie", choices=CHARACTERS, default="honest")
    parser.add_argument("--takes-s", type=float, default=0.0)
    given = parser.parse_args()
    character = Path("character").read_text().strip()
    kind = CHARACTERS[given.lie if character == "liar" else character]
    server = await asyncio.start_server(kind(given.takes_s).talk, "127.0.0.1", given.port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
