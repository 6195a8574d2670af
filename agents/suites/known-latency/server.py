"""An HTTP/1.1 server whose answers take times that are known: `GET /known` waits, then answers.

    python3 server.py --port 8080
    curl http://127.0.0.1:8080/known
    curl http://127.0.0.1:8080/stats

The delays are a fixed cycle of 1,000, one a request in the order in which requests come, over all
connections: 980 of a lognormal distribution (median 20 ms) and a tail of 20 from 240 to 260 ms.
After each 1,000 requests every delay was kept exactly once, so the percentiles of the cycle are
those of what the server did; those of any 2,000 or more in a row are within 1 % of them. The tail
is 2 % and not 1 %: p99 is then in its middle, and not at the cliff between body and tail, where one
request more or less would make it fourfold.

What was really kept, from the last byte of a request to the answer's being written, is told by
/stats, and on the standard output when the server ends. /stats is 200 while its figures are within
RESOLUTION of the wanted ones and 503 otherwise: a trial that asks for it is refused where the
truth did not hold, as on a machine that is busy with something else.
"""

import argparse
import asyncio
import json
import math
import selectors
import signal
import socket
import sys
import time
from array import array
from statistics import NormalDist

CYCLE = 1000
TAIL = 20
MEDIAN_S = 0.020
SPREAD = 0.37
TAIL_FROM_S, TAIL_TO_S = 0.240, 0.260

#: Coprime with the body and near its golden section, so that any stretch of the cycle is spread
#: evenly over the body; the tail comes each 50th time.
STEP = 607
TAIL_STEP = 7

#: How far a kept figure may be from the wanted one, as a share of it: timers are late, and the loop
#: may be busy with another request.
RESOLUTION = 0.05
PERCENTILES = (50, 90, 99)

LARGEST_HEAD = 16 * 1024
BODY = b"known"


def body():
    """The lognormal delays in seconds, ascending."""
    normal, count = NormalDist(), CYCLE - TAIL
    places = ((place + 0.5) / count for place in range(count))
    return [MEDIAN_S * math.exp(SPREAD * normal.inv_cdf(place)) for place in places]


def tail():
    ratio = TAIL_TO_S / TAIL_FROM_S
    return [TAIL_FROM_S * ratio ** ((place + 0.5) / TAIL) for place in range(TAIL)]


def cycle():
    """The delays in the order in which they are kept: parts of a cycle are fair samples too."""
    short, long = body(), tail()
    shuffled = iter([short[place * STEP % len(short)] for place in range(len(short))])
    apart = CYCLE // TAIL
    return [
        long[place // apart * TAIL_STEP % TAIL] if place % apart == apart // 2 else next(shuffled)
        for place in range(CYCLE)
    ]


def percentile(ascending, percent):
    """The nearest rank: the least value that `percent` of all do not exceed."""
    return ascending[max(0, math.ceil(len(ascending) * percent / 100) - 1)]


def figures(delays):
    """Percentiles and mean by their names; nothing of nothing."""
    ascending = sorted(delays)
    if not ascending:
        return {}
    found = {f"p{each}": percentile(ascending, each) for each in PERCENTILES}
    return {**found, "mean": sum(ascending) / len(ascending)}


class Record:
    """What was wanted of each request that was answered, and what was kept; seconds."""

    def __init__(self):
        self.wanted = array("d")
        self.kept = array("d")

    def add(self, wanted, kept):
        self.wanted.append(wanted)
        self.kept.append(kept)

    def stats(self):
        wanted, kept = figures(self.wanted), figures(self.kept)
        off = [abs(kept[name] / wanted[name] - 1) for name in wanted]
        return {
            "requests": len(self.kept),
            "true": figures(cycle()),
            "wanted": wanted,
            "kept": kept,
            "resolution": RESOLUTION,
            "holds": max(off, default=0.0) <= RESOLUTION,
        }


class Connection(asyncio.Protocol):
    """Answers the requests of one connection in order; none of them has a body.

    A request that comes before the one before it is answered has its delay from when its turn
    comes: load tools do not pipeline.
    """

    def __init__(self, loop, delays, record):
        self.loop = loop
        self.delays = delays
        self.record = record
        self.unread = b""
        self.waiting = []
        self.timer = None

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, _error):
        if self.timer is not None:
            self.timer.cancel()

    def data_received(self, data):
        came = time.perf_counter()
        *heads, self.unread = (self.unread + data).split(b"\r\n\r\n")
        if len(self.unread) > LARGEST_HEAD:
            self.transport.close()
            return
        self.waiting += heads
        if self.timer is None:
            self.next(came)

    def next(self, came):
        self.timer = None
        while self.waiting and self.timer is None and not self.transport.is_closing():
            head = self.waiting.pop(0)
            path = head.partition(b" ")[2].partition(b" ")[0].partition(b"?")[0]
            close = b"connection: close" in head.lower()
            if path == b"/known":
                wanted = next(self.delays)
                due = self.loop.time() + wanted - (time.perf_counter() - came)
                self.timer = self.loop.call_at(due, self.answer, came, wanted, close)
            elif path == b"/stats":
                stats = self.record.stats()
                status = "200 OK" if stats["holds"] else "503 Service Unavailable"
                self.write(status, json.dumps(stats).encode(), close)
            else:
                self.write("404 Not Found" if path != b"/ready" else "200 OK", b"", close)

    def answer(self, came, wanted, close):
        self.write("200 OK", BODY, close)
        answered = time.perf_counter()
        self.record.add(wanted, answered - came)
        self.next(answered)

    def write(self, status, body, close):
        head = (
            f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n"
            f"Connection: {'close' if close else 'keep-alive'}\r\n\r\n"
        )
        self.transport.write(head.encode("latin-1") + body)
        if close:
            self.transport.close()


def endless(values):
    while True:
        yield from values


async def serve(address, port):
    loop = asyncio.get_running_loop()
    record, delays = Record(), endless(cycle())
    ended = asyncio.Event()
    if sys.platform != "win32":
        loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(
        lambda: Connection(loop, delays, record), address, port, backlog=1024
    )
    async with server:
        await ended.wait()
    print(json.dumps(record.stats()), flush=True)


def precise_loop():
    """epoll waits in whole milliseconds; select waits in microseconds, for up to 1,000 sockets."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    running = precise_loop()
    try:
        running.run_until_complete(serve(given.bind, given.port))
    finally:
        running.close()
