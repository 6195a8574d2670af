"""The commands of `ip` and `tc` that set up a network; they are constants and numbers."""

from __future__ import annotations

from ..protocol import EMULATED_SERVER_ADDRESS
from ..step.plan import Network
from .iproute import Command

#: The ends of the link: their interfaces and addresses.
LOAD, SERVER = "load", "server"
LOAD_ADDRESS, SERVER_ADDRESS = "198.18.0.1", EMULATED_SERVER_ADDRESS
_PREFIX = 30
#: Locally administered addresses. Known neighbours need no ARP, whose packets could get lost.
_MACS = {LOAD: "02:00:00:00:00:01", SERVER: "02:00:00:00:00:02"}
_ADDRESSES = {LOAD: LOAD_ADDRESS, SERVER: SERVER_ADDRESS}

#: The bytes of a full Ethernet frame, as the queues count them.
FRAME_BYTES = 1514
#: The packets that one direction of the link holds at most: those under way, because of the delay.
_MOST_UNDER_WAY = 100_000
#: What a rate may send at once, and how long its queue is, in seconds; and at least, in frames.
BURST_S, QUEUE_S = 0.001, 0.05
_LEAST_BURST, _LEAST_QUEUE = 2, 16


def build_link_commands(server_namespace: str) -> list[Command]:
    """Return the commands that create both ends in the namespace of the load."""
    return [
        (
            *("ip", "link", "add", "name", LOAD, "address", _MACS[LOAD], "type", "veth"),
            *("peer", "name", SERVER, "address", _MACS[SERVER], "netns", server_namespace),
        )
    ]


def build_end_commands(end: str, network: Network) -> list[Command]:
    """Return the commands for one end, in its namespace."""
    peer = SERVER if end == LOAD else LOAD
    return [
        ("ip", "link", "set", "dev", "lo", "up"),
        # Else the kernel hands over up to 64 KiB as one packet, which is lost as a whole.
        ("ip", "link", "set", "dev", end, "gso_max_segs", "1", "addrgenmode", "none"),
        ("ip", "address", "add", f"{_ADDRESSES[end]}/{_PREFIX}", "dev", end),
        ("ip", "link", "set", "dev", end, "up"),
        (
            *("ip", "neighbour", "add", _ADDRESSES[peer], "lladdr", _MACS[peer]),
            *("dev", end, "nud", "permanent"),
        ),
        *build_queue_commands(end, network),
    ]


def build_queue_commands(end: str, network: Network) -> list[Command]:
    """Return the commands for what one end sends: half of the delay, the loss, then the rate."""
    netem, commands = _list_netem_words(network), []
    if netem:
        limit = ("limit", str(_MOST_UNDER_WAY))
        commands.append(
            ("tc", "qdisc", "add", "dev", end, "root", "handle", "1:", "netem", *limit, *netem)
        )
    if network.rate_bps is not None:
        parent = ("parent", "1:1") if netem else ("root",)
        rate = _list_rate_words(network.rate_bps)
        commands.append(("tc", "qdisc", "add", "dev", end, *parent, "handle", "2:", "tbf", *rate))
    return commands


def _list_netem_words(network: Network) -> tuple[str, ...]:
    words: list[str] = []
    if network.delay_s:
        words += ["delay", _format_half(network.delay_s)]
        if network.jitter_s:
            words.append(_format_half(network.jitter_s))
    if network.loss:
        words += ["loss", "random", f"{100 * network.loss:.6g}%"]
    return tuple(words)


def _format_half(seconds: float) -> str:
    return f"{round(seconds / 2 * 1e6)}us"


def _list_rate_words(rate_bps: float) -> tuple[str, ...]:
    burst, queue = round(_compute_burst(rate_bps)), compute_queue_bytes(rate_bps)
    return ("rate", f"{round(rate_bps)}bit", "burst", f"{burst}b", "limit", f"{queue}b")


def compute_queue_bytes(rate_bps: float) -> int:
    """Return the size of the queue before a rate, with what may be sent at once."""
    waiting = max(rate_bps / 8 * QUEUE_S, _LEAST_QUEUE * FRAME_BYTES)
    return round(_compute_burst(rate_bps) + waiting)


def _compute_burst(rate_bps: float) -> float:
    return max(rate_bps / 8 * BURST_S, _LEAST_BURST * FRAME_BYTES)
