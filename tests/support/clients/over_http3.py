"""A load over HTTP/3 as a custom program: one connection, a number of requests, aioquic."""

import asyncio
import json
import sys
import time
from collections import defaultdict

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

ASKED = json.loads(sys.argv[-1])


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._http = H3Connection(self._quic)
        self._events = defaultdict(list)
        self._ended = {}

    async def get(self):
        """Return (status, bytes of the body)."""
        stream = self._quic.get_next_available_stream_id()
        authority = f"{ASKED['address']}:{ASKED['port']}"
        headers = {":method": "GET", ":scheme": "https", ":authority": authority}
        headers |= {":path": ASKED["path"], "accept-encoding": "identity"}
        self._ended[stream] = asyncio.get_running_loop().create_future()
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._http.send_headers(stream, lines, end_stream=True)
        self.transmit()
        await asyncio.wait_for(self._ended[stream], ASKED["request_timeout_s"])
        events = self._events.pop(stream)
        heads = [event for event in events if isinstance(event, HeadersReceived)]
        status = int(dict(heads[0].headers)[b":status"])
        return status, sum(len(each.data) for each in events if isinstance(each, DataReceived))

    def quic_event_received(self, event):
        for http_event in self._http.handle_event(event):
            if isinstance(http_event, HeadersReceived | DataReceived):
                self._events[http_event.stream_id].append(http_event)
                if http_event.stream_ended:
                    self._ended[http_event.stream_id].set_result(None)


async def main():
    trust = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True)
    trust.load_verify_locations(ASKED["ca"])
    host = ASKED["address"].strip("[]")
    began = time.monotonic()
    async with connect(host, ASKED["port"], configuration=trust, create_protocol=Client) as client:
        for _ in range(ASKED["requests"]):
            start = time.monotonic()
            status, size = await client.get()
            us = (time.monotonic() - start) * 1e6
            print_json(type="request", start_s=start - began, latency_us=us, ok=status == 200,
                 status=status, bytes=size)  # fmt: skip
    print_json(type="protocol", spoken="h3")
    print_json(type="done")


def print_json(**line):
    print(json.dumps(line))


asyncio.run(main())
