"""Every reason for a suspect or invalid trial, with its threshold; docs/validity.md shows it.

[T] in a reason: an initial value that has not been tested on a fleet yet; correct it by experience.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from cli.pitwall.units import format_percent, format_value
from orchestrator.loadtools.model import Level, Reason
from orchestrator.stats.block_outcomes import Outcome

Unit = Literal["share", "cores", "s", "°C", "count", "B/s"]
#: The cause of reasons that other processes on the hosts make.
NEIGHBOURS = "neighbours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """`value` is the last acceptable value in `unit`; `bound` is the side of the limit.

    None: the fact alone decides, without a value. INVALID is a hard reason, SUSPECT a soft one;
    soft reasons with the same `cause` count as one. `why` explains the threshold, `advice` the fix.
    `outcome`, of a hard reason: what it says about the measured code; void if the environment or
    the load is the cause.
    """

    code: str
    level: Level
    title: str
    reason: str
    advice: str
    value: float | None = None
    unit: Unit = "share"
    bound: Literal["most", "least"] = "most"
    cause: str = ""
    outcome: Outcome = Outcome.VOID

    @property
    def text(self) -> str:
        """Return `at most 5 % of a core`; "" without a value."""
        return (
            ""
            if self.value is None
            else f"at {self.bound} {format_quantity(self.value, self.unit)}"
        )

    def is_broken_by(self, measured: float | None) -> bool:
        """Return whether a value is beyond the threshold; an unknown value is not."""
        if measured is None or self.value is None:
            return False
        return measured > self.value if self.bound == "most" else measured < self.value

    def build_reason(self, observation: str) -> Reason:
        """Return a reason; `observation` describes the observed value."""
        limit = f" (limit: {self.text})" if self.text else ""
        message = f"{observation}{limit}: {self.advice}"
        return Reason(code=self.code, level=self.level, message=message)


def format_quantity(value: float, unit: Unit) -> str:
    """Return a number with its unit, for people."""
    if unit == "share":
        return format_percent(value)
    if unit == "cores":
        return f"{format_percent(value)} of a core"
    return format_value(value, unit, digits=3)


def _build_hard(code: str, title: str, reason: str, advice: str, **kept: Any) -> Threshold:
    return Threshold(
        code=code, level=Level.INVALID, title=title, reason=reason, advice=advice, **kept
    )


def _build_soft(code: str, title: str, reason: str, advice: str, **kept: Any) -> Threshold:
    return Threshold(
        code=code, level=Level.SUSPECT, title=title, reason=reason, advice=advice, **kept
    )


_OF_THE_LOAD = (
    _build_hard(
        "tool_crashed",
        "Load tool failed",
        "A tool that failed may have measured only part of the load.",
        "read the tool's output among the trial's files",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "hung",
        "Load interrupted",
        "The time limit cuts off the slowest requests.",
        "check whether the server hangs, or lower the time limit of a request",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "server_died",
        "Server ended under load",
        "The rest of the load had no server.",
        "look at the server's log among the trial's files",
        outcome=Outcome.BROKEN,
    ),
    _build_soft(
        "workers_ended",
        "Workers that ended under load",
        "Requests of an ended worker fail or wait, and the server starts another one. A worker is "
        "a process of the server that existed before the load.",
        "look at the server's log; if it replaces workers on purpose, turn that off",
        value=0,
        unit="count",
    ),
    _build_hard(
        "parse_mismatch",
        "Rows and report differ",
        "Rows and report describe the same requests. If they differ, one of them is wrong.",
        "keep the trial's files and report a bug of Pitwall",
    ),
    _build_hard(
        "target_unreachable",
        "Server not reached",
        "No request arrived.",
        "check that the server listens on the address of the load, and that no firewall blocks it",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "no_answers",
        "No answers",
        "There is nothing to measure.",
        "look at the server's log among the trial's files",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "all_truncated",
        "No answer in time",
        "The load ended before its first answer.",
        "make the load longer than one request takes",
        outcome=Outcome.SATURATED,
    ),
    _build_hard(
        "empty_window",
        "Nothing after the warm-up",
        "All answered requests had started during the warm-up.",
        "make the load longer or the warm-up shorter",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "http_errors",
        "Answers of another status",
        "Errors are answered faster than correct requests, so even a few make the server look "
        "faster.",
        "find out which statuses occurred, and why; the trial's page counts them. If a status is "
        "right, add it to load.expect.status",
        value=0,
        unit="count",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "transport_errors",
        "Requests without an answer",
        "A lost request has no latency, so the slowest ones would be missing.",
        "read the errors by class on the trial's page",
        value=0.001,
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "underdelivered",
        "Correct answers, share of the offered rate",
        "Below its offered rate an open loop measures a growing queue, or requests that failed.",
        "lower the rate, or search for the capacity",
        value=0.99,
        bound="least",
        outcome=Outcome.SATURATED,
    ),
    _build_hard(
        "check_failed",
        "Wrong answer to a check",
        "A server that answers incorrectly after the load did not do the work during it.",
        "read the check among the trial's files, and the server's log",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "wrong_under_load",
        "Wrong answer to a check under load",
        "The agent repeats the checks during the load. A server that answers them correctly only "
        "before and after it did other work.",
        "compare the server's answers with and without load; its log is among the trial's files",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "answer_mixed",
        "Answer to another request",
        "The server returned the x-request-id of each request before the load. An answer without "
        "it belongs to another request.",
        "check how the server assigns answers to connections",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "body_changed",
        "Bodies of the answers",
        "The definition says which parts of the body may vary. Other differences are other work.",
        "check the server's answers under load, or correct load.expect.volatile",
        outcome=Outcome.BROKEN,
    ),
    _build_soft(
        "answers_changed",
        "Sampled answers that differ under load",
        "What was equal in several answers before the load differs during it. Pages that change "
        "rarely may do this as well.",
        "check the server's answers under load, or set load.expect.volatile",
        cause="answers",
    ),
    _build_hard(
        "protocol",
        "Another protocol",
        "A connection that used another protocol measured something else.",
        "check that the server offers the protocol (with TLS: by ALPN)",
        outcome=Outcome.BROKEN,
    ),
    _build_hard(
        "response_size",
        "Size of the answers",
        "Answers shorter or longer than in the definition are different work.",
        "check the server's answers under load, or correct response_bytes",
        outcome=Outcome.BROKEN,
    ),
    _build_soft(
        "response_changed",
        "Answers that differ from the checked ones",
        "The answers under load have another size than those of the checks. Dynamic pages may do "
        "this as well.",
        "check the server's answers under load, or set response_bytes in the definition",
        cause="answers",
    ),
    _build_soft(
        "connections_closed",
        "Connections that the server closed",
        "The load wants to keep its connections. If the server closes them, connecting is part of "
        "the load, and tools differ in whether latency includes it.",
        "check the server's keep-alive, or set keepalive: false in the definition",
        cause="tool",
    ),
    _build_hard(
        "connections_missing",
        "Open connections, share of the wanted ones",
        "A closed loop with fewer connections is a lower load.",
        "check whether the server or a limit of open files rejects connections",
        value=0.95,
        bound="least",
        outcome=Outcome.SATURATED,
    ),
    _build_hard(
        "tool_bound",
        "CPU of the load tool",
        "Near its limit the tool queues requests, and measures itself.",
        "give the load tool more CPUs or another host, or lower the load",
        value=0.85,
    ),
    _build_soft(
        "shared_cpus",
        "Load tool and server on the same physical cores",
        "They compete for CPU time, depending on the load. The CPUs of one core do as well.",
        "give each separate CPUs in the definition's limits, or a separate host",
        cause="tool",
    ),
    _build_soft(
        "littles_law",
        "Little's law",
        "Rate × latency must equal the number of concurrent requests; the rest of the time was "
        "spent elsewhere. Not checked below 20 requests per connection, where connecting and an "
        "uneven end matter too much.",
        "check whether the tool, connecting or the network took the time",
        value=0.10,
        cause="tool",
    ),
    _build_soft(
        "no_steady_state",
        "No steady state",
        "The first and the last third of the window differ by more than noise [T].",
        "increase the warm-up, and check whether something grows or fills up",
        value=0.10,
    ),
    _build_soft(
        "warm_up_too_short",
        "Warm-up within the window",
        "The part of the window that MSER-5 counts as warm-up changes the result by more than the "
        "margin of a comparison. If MSER-5 finds no end of the warm-up, the whole drift counts.",
        "increase the warm-up",
        value=0.03,
    ),
    _build_hard(
        "link_stalled",
        "Link between the hosts",
        "The hosts poll each other once a second. If that is delayed, requests were delayed, too.",
        "check the network between the hosts",
        value=3.0,
        unit="s",
    ),
    _build_hard(
        "network_differs",
        "Emulated network",
        "The network of the definition is measured before each load: its round trip, jitter, loss "
        "and rate. Another network is another measurement. Jitter may differ by 25 %, and the "
        "number of lost packets also by four standard deviations of chance.",
        "check the host again, and whether something else changes its network",
        value=0.05,
    ),
    _build_soft(
        "limits_refused",
        "Limits that were not applied",
        "The definition asks for a machine of a different size.",
        "agents/README.md lists what each system can limit",
    ),
    _build_hard(
        "quota_refused",
        "CPU quota that was not applied",
        "Without its quota the server had several times the CPU.",
        "use a host that allows control groups",
    ),
    _build_hard(
        "limits_changed",
        "Limits that changed under load",
        "Part of the load had other limits than the rest.",
        "find out what changes control groups on the host; only systemd and the agent should",
    ),
)

_OF_THE_HOSTS = (
    _build_soft(
        "busy_before",
        "CPU of other processes before the start",
        "Processes that were busy before the trial continue during it [T].",
        "stop other programs on the host, or increase the cool-down",
        value=0.10,
        cause=NEIGHBOURS,
    ),
    _build_soft(
        "pressure_before",
        "Waiting for CPU before the start",
        "Other processes waited for a CPU before the trial started [T].",
        "stop other programs on the host, or increase the cool-down",
        value=0.10,
        cause=NEIGHBOURS,
    ),
    _build_soft(
        "load_before",
        "Load average per core before the start",
        "Only for hosts that do not report their CPU time: the average covers the last minute, "
        "including the previous trial [T].",
        "stop other programs on the host, or increase the cool-down",
        value=0.5,
        unit="count",
        cause=NEIGHBOURS,
    ),
    _build_soft(
        "foreign_process",
        "CPU of other processes",
        "They take CPU time and caches from the server or the load tool, also on the siblings of "
        "their CPUs. In a closed loop, p99 changes by more than its margin from 2 % of a core on.",
        "stop other programs on the host, or pin them to other CPUs",
        value=0.05,
        unit="cores",
        cause=NEIGHBOURS,
    ),
    _build_hard(
        "busy_neighbour",
        "CPU of other processes, half a core",
        "With half a core in use, only the rest of the CPU was measured. The median latency and "
        "the rate of a closed loop change, too.",
        "stop other programs on the host, or pin them to other CPUs",
        value=0.5,
        unit="cores",
        cause=NEIGHBOURS,
    ),
    _build_soft(
        "cpu_pressure",
        "Waiting for CPU while other processes ran",
        "Threads waited for a CPU that other processes used. Without other processes, the threads "
        "of the trial wait for each other, which is the load [T].",
        "stop other programs on the host, or pin them to other CPUs",
        value=0.10,
        cause=NEIGHBOURS,
    ),
    _build_soft(
        "agent_cpu",
        "CPU of the agent under load",
        "The agent samples the host while the load runs. It is judged like other processes.",
        "run the server with fewer processes and threads, or on a larger host",
        value=0.05,
        unit="cores",
    ),
    _build_soft(
        "chatty_log",
        "Output of the measured processes",
        "It goes to the disk of the host. Writing it takes CPU time, and more in some seconds than "
        "in others [T].",
        "turn off the access log of the server, or let it write less",
        value=10 * 2**20,
        unit="B/s",
    ),
    _build_soft(
        "steal",
        "CPU that the hypervisor took",
        "Time passed while the virtual machine did not run [T].",
        "find out who shares the machine, or use a dedicated one",
        value=0.01,
        cause=NEIGHBOURS,
    ),
    _build_soft(
        "virus_scan",
        "Virus scanner running",
        "It scans files and connections at unpredictable times [T].",
        "exclude the work directory from its scans, or schedule it for other times",
        value=0.01,
        unit="cores",
        cause=NEIGHBOURS,
    ),
    _build_soft(
        "clock_drop",
        "Lowest clock under load, share of the highest",
        "The same work takes longer at a lower clock [T].",
        "set the governor to performance, and check temperature and power of the host",
        value=0.90,
        bound="least",
        cause="heat",
    ),
    _build_soft(
        "heating",
        "Rise of temperature under load",
        "A host that is still warming up will change its clocks [T].",
        "warm up for longer",
        value=5.0,
        unit="°C",
        cause="heat",
    ),
    _build_soft(
        "clock_limited",
        "Lowest clock limit under load, share of the highest",
        "A program or the kernel changed the clock that the CPUs may reach, mostly because of heat "
        "[T].",
        "cool the host better, or stop what limits its clocks, such as thermald",
        value=1.0,
        bound="least",
        cause="heat",
    ),
    _build_soft(
        "clock_below_base",
        "Highest clock under load, share of the base clock",
        "With the governor performance, only heat, power or the firmware keep a CPU below its base "
        "clock [T].",
        "check temperature, power supply and power limits of the host",
        value=0.90,
        bound="least",
        cause="heat",
    ),
    _build_hard(
        "throttled_by_heat",
        "Thermal throttling",
        "The CPU lowered its clock.",
        "cool the host better, or limit its clocks",
        value=0,
        unit="count",
    ),
    _build_hard(
        "tuning_refused",
        "Tuning that was not set",
        "The settings of the host ask for another state of the machine than the measured one.",
        "remove the setting from the settings of the host, or let the login of Pitwall write the "
        "file",
    ),
    _build_hard(
        "tuning_changed",
        "Tuning that was changed under load",
        "A part of the load was measured with another state of the machine.",
        "stop what changes it, such as power-profiles-daemon, tuned or thermald",
    ),
    _build_hard(
        "on_battery",
        "On battery",
        "On battery, systems save power.",
        "plug the host in",
    ),
    _build_hard(
        "swapping",
        "Pages swapped",
        "Reading a page from disk takes as long as a thousand requests.",
        "give the host more memory, or run less on it",
        value=0,
        unit="count",
    ),
    _build_hard(
        "foreign_quota",
        "Throttled by a quota of a parent group",
        "The host, a container or a user has less CPU than it reports.",
        "remove the quota from the agent's group, or put it into the definition",
        value=0,
        unit="count",
    ),
    _build_hard(
        "ports_exhausted",
        "Ports exhausted",
        "Without a free port there is no new connection until an old one expires.",
        "keep connections alive, or widen net.ipv4.ip_local_port_range",
    ),
    _build_hard(
        "listen_overflow",
        "Listen queue overflow",
        "A connection that finds the queue full is retried a second later.",
        "raise the server's backlog and net.core.somaxconn",
        value=0,
        unit="count",
        outcome=Outcome.SATURATED,
    ),
    _build_soft(
        "retransmissions",
        "TCP retransmissions",
        "Each lost segment delays its connection by 200 ms or more [T]. A segment that the "
        "receiver already had (DSACK) does not count.",
        "check the network between the hosts",
        value=0.001,
    ),
    _build_hard(
        "clock_stepped",
        "Step of the wall clock",
        "A program that measures with the wall clock measured the step.",
        "let the host slew its clock (chronyd without makestep), or wait until it is synchronised",
        value=0.001,
        unit="s",
    ),
    _build_hard(
        "suspended",
        "Host asleep",
        "While a machine sleeps, nothing runs, and afterwards connections and clocks differ.",
        "let the host not sleep while jobs run: disable its suspend on idle, and keep the lid open",
        value=0.01,
        unit="s",
    ),
    _build_hard(
        "rebooted",
        "Host restarted",
        "The state of the machine before and after differs.",
        "find out why the host restarted",
    ),
    _build_hard(
        "several_flags",
        "Soft reasons together",
        "One soft reason may be chance; several with different causes support each other. Reasons "
        "of one cause, such as another process and the waiting for it, count as one.",
        "read each of them",
        value=1,
        unit="count",
    ),
)

#: By code, in display order.
THRESHOLDS: Mapping[str, Threshold] = MappingProxyType(
    {each.code: each for each in (*_OF_THE_LOAD, *_OF_THE_HOSTS)}
)
