"""Measure an emulated network with UDP packets, before anything else uses it.

This thread sends and receives on both ends, so all times are of one clock.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..step.plan import Network
from .commands import (
    BURST_S,
    FRAME_BYTES,
    LOAD,
    LOAD_ADDRESS,
    SERVER,
    SERVER_ADDRESS,
    compute_queue_bytes,
)
from .namespaces import Namespace

#: Round trips, and the pause between two of them; with jitter its spread has to be known.
ROUND_TRIPS, ROUND_TRIPS_WITH_JITTER, PAUSE_S = 100, 400, 0.002
#: The packets whose loss is counted: enough for this number of lost ones, within the time.
LOST_PACKETS, LOSS_S = 50, 3.0
#: The most packets per second of that, and the share of the rate that they use.
_PACKETS_PER_S, _SHARE_OF_RATE = 20_000, 0.5
#: A rate is measured for at least this time, and for this number of frames.
RATE_S, RATE_FRAMES = 0.3, 50
#: More is offered than the rate allows.
_OFFERED = 2.0
#: How long a packet may take in addition to the delay.
_LATE_S = 0.5
#: SO_SNDBUFFORCE and SO_RCVBUFFORCE of Linux, which the limits of the system do not apply to.
_FORCED_BUFFERS, _BUFFER_BYTES = (32, 33), 8 << 20
_SEQUENCE = struct.Struct("!Q")
#: The frame of a packet with a number: Ethernet, IPv4, UDP.
SMALL_FRAME_BYTES = 14 + 20 + 8 + _SEQUENCE.size
_PAYLOAD_BYTES = FRAME_BYTES - 14 - 20 - 8
#: The kernel cuts one large datagram into segments (linux/udp.h), so that Python sends fast enough.
_UDP_SEGMENT, _MOST_SEGMENTS = 103, 40
_COUNTERS = Path("/proc/thread-self/net/dev")
_BURST_PACKETS = 32
#: With a uniform jitter in each direction, half of the round trips are this close to the median.
QUARTILE_OF_JITTER = 1 - math.sqrt(0.5)


class End(NamedTuple):
    """One end of the link: its interface, its namespace, and a socket that is connected."""

    name: str
    namespace: Namespace
    sock: socket.socket


def measure_network(network: Network, load: Namespace, server: Namespace) -> dict[str, Any]:
    """Return "round_trip_s", "jitter_s", "lost" and "rate_bps" of NETWORK in protocol.py."""
    with _connect(load, server) as (near, far):
        trips = _measure_round_trips(network, near.sock, far.sock)
        lost = {
            "requests": _count_lost(network, near.sock, far.sock),
            "responses": _count_lost(network, far.sock, near.sock),
        }
        rates: Optional[dict[str, float]] = None
        if network.rate_bps is not None:
            rates = {
                "requests": _measure_rate(network, network.rate_bps, near, far),
                "responses": _measure_rate(network, network.rate_bps, far, near),
            }
    spread = estimate_jitter_s(trips) if network.jitter_s else None
    return {
        "round_trip_s": statistics.median(trips) if trips else None,
        "jitter_s": spread,
        "lost": lost,
        "rate_bps": rates,
    }


def estimate_jitter_s(trips: list[float]) -> Optional[float]:
    """Return by how much round trips differ from their median at most, from their quartiles.

    None with too few. The spread of the quartiles ignores the few that another process delayed.
    """
    if len(trips) < ROUND_TRIPS:
        return None
    first, _, third = statistics.quantiles(trips, n=4)
    return (third - first) / 2 / QUARTILE_OF_JITTER


@contextlib.contextmanager
def _connect(load: Namespace, server: Namespace) -> Iterator[tuple[End, End]]:
    with _open_socket(load, LOAD_ADDRESS) as near, _open_socket(server, SERVER_ADDRESS) as far:
        near.connect(far.getsockname())
        far.connect(near.getsockname())
        yield End(LOAD, load, near), End(SERVER, server, far)


def _open_socket(namespace: Namespace, address: str) -> socket.socket:
    with namespace.entered():
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    for option in _FORCED_BUFFERS:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    sock.bind((address, 0))
    return sock


def _measure_round_trips(network: Network, near: socket.socket, far: socket.socket) -> list[float]:
    """Return the durations of the round trips that were not lost."""
    count = ROUND_TRIPS_WITH_JITTER if network.jitter_s else ROUND_TRIPS
    pause_s = max(PAUSE_S, 2 * _compute_frame_s(network))
    sent_at: list[float] = []
    trips: list[float] = []
    due = time.monotonic()
    while True:
        now = time.monotonic()
        if len(sent_at) < count and now >= due:
            sent_at.append(now)
            _send(near, len(sent_at) - 1)
            # A busy host sends later, and no burst then.
            due = now + pause_s
        waits_s = due - now if len(sent_at) < count else 0.01
        ready, _, _ = select.select([near, far], [], [], max(0.0, waits_s))
        if far in ready:
            for number in _receive(far):
                _send(far, number)
        if near in ready:
            arrived = time.monotonic()
            trips += [arrived - sent_at[number] for number in _receive(near)]
        is_late = time.monotonic() > due + network.delay_s + network.jitter_s + _LATE_S
        if len(trips) == count or (len(sent_at) == count and is_late):
            return trips


def _compute_frame_s(network: Network) -> float:
    """Return how long the rate needs for a small packet."""
    return 0.0 if network.rate_bps is None else SMALL_FRAME_BYTES * 8 / network.rate_bps


def choose_loss_packets(network: Network) -> tuple[int, float]:
    """Return how many packets are sent to count the lost ones, and how many per second."""
    per_s = float(_PACKETS_PER_S)
    if network.rate_bps is not None:
        per_s = min(per_s, _SHARE_OF_RATE / _compute_frame_s(network))
    wanted = math.ceil(LOST_PACKETS / network.loss) if network.loss else ROUND_TRIPS
    return max(1, min(wanted, int(per_s * LOSS_S))), per_s


def _count_lost(network: Network, sender: socket.socket, receiver: socket.socket) -> dict[str, int]:
    count, per_s = choose_loss_packets(network)
    while _receive(receiver):
        pass  # Late packets of another measurement.
    sent = arrived = 0
    began = last = time.monotonic()
    patience_s = network.delay_s + network.jitter_s + _LATE_S
    while arrived < count and time.monotonic() - last < patience_s:
        due = min(count, int((time.monotonic() - began) * per_s) + 1, sent + _BURST_PACKETS)
        for number in range(sent, due):
            _send(sender, number)
        if due > sent:
            sent, last = due, time.monotonic()
        select.select([receiver], [], [], 0 if sent < count else 0.01)
        new = len(_receive(receiver))
        arrived += new
        if new:
            last = time.monotonic()
    return {"sent": sent, "lost": max(0, sent - arrived)}


def _send(sock: socket.socket, number: int) -> None:
    # A packet that the queue drops counts as lost.
    with contextlib.suppress(OSError):
        sock.send(_SEQUENCE.pack(number))


def _receive(sock: socket.socket) -> list[int]:
    numbers: list[int] = []
    try:
        while len(numbers) < _BURST_PACKETS * 8:
            numbers.append(_SEQUENCE.unpack(sock.recv(_SEQUENCE.size))[0])
    except OSError:
        pass
    return numbers


def _measure_rate(network: Network, rate_bps: float, sender: End, receiver: End) -> float:
    """Return the bits per second that arrive while more is offered; whole frames count."""
    segments = min(_MOST_SEGMENTS, max(1, int(rate_bps / 8 * BURST_S / FRAME_BYTES)))
    window_s = max(RATE_S, RATE_FRAMES * FRAME_BYTES * 8 / rate_bps)
    queue_s = compute_queue_bytes(rate_bps) * 8 / rate_bps
    begin_s = network.delay_s + queue_s
    with contextlib.suppress(OSError):
        sender.sock.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, _PAYLOAD_BYTES)
    data = bytes(_PAYLOAD_BYTES * segments)
    began, offered = time.monotonic(), 0
    first: Optional[tuple[float, int]] = None
    while True:
        spent = time.monotonic() - began
        if first is None and spent >= begin_s:
            first = _read_arrived(receiver)
        if spent >= begin_s + window_s and first is not None:
            break
        if offered < rate_bps / 8 * _OFFERED * spent + FRAME_BYTES:
            with contextlib.suppress(OSError):
                sender.sock.send(data)
            offered += FRAME_BYTES * segments
        else:
            time.sleep(0.0002)
    last = _read_arrived(receiver)
    # The queue has to be empty for what comes next.
    time.sleep(network.delay_s + network.jitter_s + queue_s)
    return (last[1] - first[1]) * 8 / (last[0] - first[0])


def _read_arrived(end: End) -> tuple[float, int]:
    """Return the time, and the bytes that the interface has received so far."""
    with end.namespace.entered():
        text = _COUNTERS.read_text()
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    rows = {name.strip(): row for name, row in lines.items()}
    return time.monotonic(), int(rows[end.name].split()[0])
