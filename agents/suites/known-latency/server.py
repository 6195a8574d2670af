"""An HTTP/1.1 server with known response times: `GET /known` waits, then answers.

    python3 server.py --port 8080
    curl http://127.0.0.1:8080/known
    curl http://127.0.0.1:8080/stats

The delays are a fixed cycle of 1,000, in the order of arrival over all connections. Of these, 980
follow a lognormal distribution (median 20 ms). A tail of 20 is from 240 to 260 ms. After each
1,000 requests every delay was used exactly once, so the percentiles of the cycle are those of the
server. The percentiles of any 2,000 or more consecutive requests are within 1 % of them. The tail
is 2 % and not 1 %, so p99 is in its middle. At the edge between body and tail, one request more or
less would multiply p99 by four.

/stats reports the actual delays, from the last byte of a request until the response is written; the
server also prints them when it ends. The status of /stats is 200 while its values are within
RESOLUTION of the intended ones, else 503. So a trial that checks /stats fails if the delays were
wrong, for example on a busy machine.
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

#: Coprime with the body and near its golden section, so that any part of the cycle is spread evenly
#: over the body; every 50th delay is one of the tail.
STEP = 607
TAIL_STEP = 7

#: The allowed relative difference of an actual value from the intended one: timers are late, and
#: the loop may be busy with another request.
RESOLUTION = 0.05
PERCENTILES = (50, 90, 99)

LARGEST_HEAD = 16 * 1024
BODY = b"known"


def body():
    """Return the lognormal delays in seconds, ascending."""
    normal, count = NormalDist(), CYCLE - TAIL
    places = ((place + 0.5) / count for place in range(count))
    return [MEDIAN_S * math.exp(SPREAD * normal.inv_cdf(place)) for place in places]


def tail():
    ratio = TAIL_TO_S / TAIL_FROM_S
    return [TAIL_FROM_S * ratio ** ((place + 0.5) / TAIL) for place in range(TAIL)]


def cycle():
    """Return the delays in the order of their use: parts of a cycle are fair samples, too."""
    short, long = body(), tail()
    shuffled = iter([short[place * STEP % len(short)] for place in range(len(short))])
    apart = CYCLE // TAIL
    return [
        long[place // apart * TAIL_STEP % TAIL] if place % apart == apart // 2 else next(shuffled)
        for place in range(CYCLE)
    ]


def percentile(ascending, percent):
    """Return the nearest rank: the smallest value that `percent` of all do not exceed."""
    return ascending[max(0, math.ceil(len(ascending) * percent / 100) - 1)]


def figures(delays):
    """Return percentiles and mean by name; empty without values."""
    ascending = sorted(delays)
    if not ascending:
        return {}
    found = {f"p{each}": percentile(ascending, each) for each in PERCENTILES}
    return {**found, "mean": sum(ascending) / len(ascending)}


class Record:
    """The intended and actual delays of all answered requests in seconds."""

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
    """Answers the requests of one connection in order; they have no bodies.

    The delay of a request that arrives before the previous one is answered starts after that
    answer: load tools do not pipeline.
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
    """Use select, which waits in microseconds for up to 1,000 sockets; epoll uses milliseconds."""
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
