"""Every reason not to believe a trial, with its threshold, as data; docs/validity.md shows it.

[T] in a reason: a starting value that nobody has tried on a fleet yet; correct it by experience.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from orchestrator.loadtools.model import Level, Reason

Unit = Literal["share", "cores", "s", "°C", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """`value` is the last one that is still good, in `unit`, on the side that `bound` names.

    None: there is nothing to measure, the fact alone decides. INVALID is a hard reason, SUSPECT a
    soft one; soft ones of one `cause` are one piece of evidence. `why` is the reason of the
    threshold, `advice` what to do about it.
    """

    code: str
    level: Level
    title: str
    why: str
    advice: str
    value: float | None = None
    unit: Unit = "share"
    bound: Literal["most", "least"] = "most"
    cause: str = ""

    @property
    def text(self) -> str:
        """`at most 5 % of a core`; "" without a value."""
        return "" if self.value is None else f"at {self.bound} {quantity(self.value, self.unit)}"

    def is_broken_by(self, measured: float | None) -> bool:
        """What is not known breaks nothing."""
        if measured is None or self.value is None:
            return False
        return measured > self.value if self.bound == "most" else measured < self.value

    def reason(self, found: str) -> Reason:
        """`found` says what was measured."""
        limit = f" ({self.text} is good)" if self.text else ""
        message = f"{found}{limit}: {self.advice}"
        return Reason(code=self.code, level=self.level, message=message)


def quantity(value: float, unit: Unit) -> str:
    """A number with its unit, for people."""
    if unit == "share":
        return f"{value * 100:.3g} %"
    if unit == "cores":
        return f"{value * 100:.3g} % of a core"
    if unit == "s":
        return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
    return f"{value:g} {unit}" if unit != "count" else f"{value:g}"


def _hard(code: str, title: str, why: str, advice: str, **kept: Any) -> Threshold:
    return Threshold(code=code, level=Level.INVALID, title=title, why=why, advice=advice, **kept)


def _soft(code: str, title: str, why: str, advice: str, **kept: Any) -> Threshold:
    return Threshold(code=code, level=Level.SUSPECT, title=title, why=why, advice=advice, **kept)


_OF_THE_LOAD = (
    _hard(
        "tool_crashed",
        "Load tool failed",
        "A tool that did not end well may have measured part of the load only.",
        "look at the tool's output among the trial's files",
    ),
    _hard(
        "hung",
        "Load interrupted",
        "What is cut off at the limit are the slowest requests.",
        "see whether the server froze, or allow the requests less time each",
    ),
    _hard(
        "server_died",
        "Server ended under load",
        "The rest of the load met nobody.",
        "look at the server's log among the trial's files",
    ),
    _hard(
        "parse_mismatch",
        "Rows and report differ",
        "Two accounts of the same requests have to agree, or one of them is misread.",
        "keep the trial's files and report it as a defect of Pitwall",
    ),
    _hard(
        "target_unreachable",
        "Server not reached",
        "No request arrived.",
        "see whether the server listens where the load is sent, and whether a firewall is between",
    ),
    _hard(
        "no_answers",
        "No answers",
        "There is nothing to measure.",
        "look at the server's log among the trial's files",
    ),
    _hard(
        "all_truncated",
        "No answer in time",
        "The load ended before its first answer.",
        "make the load longer than one request takes",
    ),
    _hard(
        "empty_window",
        "Nothing after the warm-up",
        "All that was answered had started during the warm-up.",
        "make the load longer or the warm-up shorter",
    ),
    _hard(
        "http_errors",
        "Answers of another status",
        "A refusal is quicker than the work, so even a few of them flatter the server.",
        "see which statuses came, and why; the trial's page counts them",
        value=0,
        unit="count",
    ),
    _hard(
        "transport_errors",
        "Requests without an answer",
        "A lost request has no latency, so the slowest ones would be missing.",
        "see the errors by class on the trial's page",
        value=0.001,
    ),
    _hard(
        "underdelivered",
        "Answered well of the offered rate",
        "Below its offered rate an open loop measures a growing queue: the server is saturated.",
        "offer less, or look for the capacity",
        value=0.99,
        bound="least",
    ),
    _hard(
        "check_failed",
        "Wrong answer to a check",
        "A server that answers wrongly after the load was not doing the work under it.",
        "see the check among the trial's files, and the server's log",
    ),
    _hard(
        "protocol",
        "Another protocol",
        "A connection that fell back measured something else.",
        "see whether the server offers the protocol (with TLS: by ALPN)",
    ),
    _hard(
        "response_size",
        "Size of the answers",
        "Shorter or longer answers than the definition says are other work.",
        "see what the server answers under load, or correct response_bytes",
    ),
    _soft(
        "response_changed",
        "Answers unlike the checked ones",
        "The server answers the checks with another size than the load; pages that change by "
        "themselves do so, too.",
        "see what the server answers under load, or say response_bytes in the definition",
    ),
    _hard(
        "connections_missing",
        "Connections that were open",
        "A closed loop with fewer connections is a lighter load.",
        "see whether the server or a limit of open files refuses connections",
        value=0.95,
        bound="least",
    ),
    _hard(
        "tool_bound",
        "CPU of the load tool",
        "Near its limit the tool queues, and what it measures is itself.",
        "give the load tool more CPUs, or another host, or offer less",
        value=0.85,
    ),
    _soft(
        "shared_cpus",
        "Load tool and server on the same CPUs",
        "They take time from each other, and how much depends on the load.",
        "give each CPUs of its own in the definition's limits, or a host of its own",
        cause="tool",
    ),
    _soft(
        "littles_law",
        "Little's law",
        "Rate × latency has to give the requests under way; what is missing was spent outside. "
        "With fewer than 20 requests in turn, connecting and an uneven end weigh too much to ask.",
        "see whether the tool, connecting or the network took the time",
        value=0.10,
        cause="tool",
    ),
    _soft(
        "no_steady_state",
        "No steady state",
        "First and last third of the window differ by more than noise does [T].",
        "warm up for longer, and see whether something grows or fills",
        value=0.10,
    ),
    _soft(
        "warm_up_too_short",
        "Warm-up within the window",
        "What MSER-5 would cut from the window, or the whole drift where it finds no end of the "
        "warm-up, changes the result by more than the margin of a comparison.",
        "warm up for longer",
        value=0.03,
    ),
    _hard(
        "link_stalled",
        "Link between the hosts",
        "The hosts ask each other once a second; if that waits, requests have waited, too.",
        "look at the network between the hosts",
        value=3.0,
        unit="s",
    ),
    _soft(
        "limits_refused",
        "Limits that did not hold",
        "The definition asks for a machine of another size.",
        "see agents/README.md for what each system can limit",
    ),
    _hard(
        "quota_refused",
        "CPU quota that did not hold",
        "Without its quota the server had several times the CPU.",
        "use a host where control groups can be made",
    ),
)

_OF_THE_HOSTS = (
    _soft(
        "busy_before",
        "CPU of others before the start",
        "What worked before the trial goes on in it [T].",
        "let nothing else run on the host, or give it longer to cool down",
        value=0.10,
        cause="neighbours",
    ),
    _soft(
        "pressure_before",
        "Waiting for CPU before the start",
        "Somebody waited for a CPU although nothing of the trial ran [T].",
        "let nothing else run on the host, or give it longer to cool down",
        value=0.10,
        cause="neighbours",
    ),
    _soft(
        "load_before",
        "Load a core before the start",
        "Said only of hosts that do not tell their CPU time: the figure remembers the last minute, "
        "the trial before included [T].",
        "let nothing else run on the host, or give it longer to cool down",
        value=0.5,
        unit="count",
        cause="neighbours",
    ),
    _soft(
        "foreign_process",
        "CPU of other processes",
        "It is taken from the server or the load tool, or from their caches [T].",
        "stop what else runs there, or hold it to other CPUs",
        value=0.05,
        unit="cores",
        cause="neighbours",
    ),
    _hard(
        "busy_neighbour",
        "CPU of others, half a core",
        "With so much of a core gone, what is left of it was measured [T].",
        "stop what else runs there, or hold it to other CPUs",
        value=0.5,
        unit="cores",
    ),
    _soft(
        "cpu_pressure",
        "Waiting for CPU while others worked",
        "Somebody waited for a CPU, and others were there: what they used was missing. Without "
        "others the threads of the trial wait for each other, which is the load [T].",
        "stop what else runs there, or hold it to other CPUs",
        value=0.10,
        cause="neighbours",
    ),
    _soft(
        "steal",
        "CPU that the hypervisor took",
        "The clock went on while the machine stood still [T].",
        "ask who shares the machine, or use one of its own",
        value=0.01,
        cause="neighbours",
    ),
    _soft(
        "virus_scan",
        "Virus scanner at work",
        "It looks into files and connections, at times of its own [T].",
        "leave the work directory out of its scans, or let it scan at other times",
        value=0.01,
        unit="cores",
        cause="neighbours",
    ),
    _soft(
        "clock_drop",
        "Lowest clock under load, of the highest",
        "The same work took longer at the lower clock [T].",
        "set the governor to performance, and see whether the host is too hot or short of power",
        value=0.90,
        bound="least",
        cause="heat",
    ),
    _soft(
        "heating",
        "Rise of temperature under load",
        "A host that is still warming up will still change its clocks [T].",
        "warm up for longer",
        value=5.0,
        unit="°C",
        cause="heat",
    ),
    _hard(
        "throttled_by_heat",
        "Throttling by heat",
        "The CPU slowed itself down.",
        "cool the host better, or limit its clocks",
        value=0,
        unit="count",
    ),
    _hard(
        "on_battery",
        "On battery",
        "On battery, systems save power where they can.",
        "plug the host in",
    ),
    _hard(
        "swapping",
        "Pages swapped",
        "A page from the disk costs as much as a thousand requests.",
        "give the host more memory, or run less on it",
        value=0,
        unit="count",
    ),
    _hard(
        "foreign_quota",
        "Throttled by a quota from above",
        "The host, a container or a user has less CPU than it shows.",
        "take the quota off the agent's group, or put it into the definition",
        value=0,
        unit="count",
    ),
    _hard(
        "ports_exhausted",
        "Ports exhausted",
        "Without a free port there is no new connection until an old one is forgotten.",
        "keep connections alive, or widen net.ipv4.ip_local_port_range",
    ),
    _hard(
        "listen_overflow",
        "Listen queue overflown",
        "A connection that finds the queue full is tried again a second later.",
        "raise the server's backlog and net.core.somaxconn",
        value=0,
        unit="count",
    ),
    _soft(
        "retransmissions",
        "TCP segments sent again",
        "Each lost one costs its connection 200 ms or more [T].",
        "look at the network between the hosts",
        value=0.001,
    ),
    _hard(
        "clock_stepped",
        "Step of the wall clock",
        "Who takes times from the wall clock measured the step.",
        "let the host slew its clock (chronyd without makestep), or wait until it is set",
        value=0.001,
        unit="s",
    ),
    _hard(
        "rebooted",
        "Host restarted",
        "Before and after it are two machines.",
        "see why the host restarted",
    ),
    _hard(
        "several_flags",
        "Soft reasons together",
        "One soft reason may be chance; those of different causes make each other likelier. Those "
        "of one cause, such as a neighbour and the waiting for it, are one.",
        "see each of them",
        value=1,
        unit="count",
    ),
)

#: By code, in the order in which they are told.
THRESHOLDS: Mapping[str, Threshold] = MappingProxyType(
    {each.code: each for each in (*_OF_THE_LOAD, *_OF_THE_HOSTS)}
)
