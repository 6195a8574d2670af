"""Other work on the hosts before and during the load; unknown values give no reason."""

import statistics
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from cli.pitwall.units import format_number, format_seconds, format_value
from orchestrator.loadtools.evidence import Evidence
from orchestrator.loadtools.model import Reason
from orchestrator.loadtools.thresholds import THRESHOLDS, format_quantity

#: Samples required to judge clock and temperature.
MIN_SAMPLES = 6
MIN_CLOCKS = 3
#: A server that used this much of a core in the previous second needed its clock.
_UNDER_LOAD = 0.5
_SCANNERS = frozenset(
    {
        "MsMpEng.exe",
        "cbdaemon",
        "clamd",
        "clamdscan",
        "clamscan",
        "esets_daemon",
        "falcon-sensor",
        "mdatp",
        "savscand",
        "sophosd",
        "wdavdaemon",
    }
)
Facts = Mapping[str, Any]


def _build_hosts_reason(
    code: str, hosts: Mapping[str, Facts], issues: Mapping[str, str]
) -> Reason | None:
    """Return one reason for all affected hosts; `issues`: the observation by host."""
    several = len(hosts) > 1
    messages = [f"{what} on host {host}" if several else what for host, what in issues.items()]
    return THRESHOLDS[code].build_reason("; ".join(messages)) if messages else None


def _check_measured(
    code: str, hosts: Mapping[str, Facts], key: str, says: Callable[[Any], str]
) -> Reason | None:
    """Return a reason for the hosts whose fact `key` is beyond the threshold of `code`."""
    rule = THRESHOLDS[code]
    issues = {
        host: says(facts[key]) for host, facts in hosts.items() if rule.is_broken_by(facts.get(key))
    }
    return _build_hosts_reason(code, hosts, issues)


def _share(value: float) -> str:
    return format_quantity(value, "share")


def _check_idle_before(evidence: Evidence) -> Reason | None:
    """Return at most one of three reasons, because they describe the same moment."""
    hosts = evidence.before
    return (
        _check_measured(
            "busy_before",
            hosts,
            "busy_share",
            lambda share: f"other processes used {_share(share)} of the machine before the start",
        )
        or _check_measured(
            "pressure_before",
            hosts,
            "pressure",
            lambda share: (
                f"processes waited for a CPU {_share(share)} of the time before the start"
            ),
        )
        or _load_before(hosts)
    )


def _load_before(hosts: Mapping[str, Facts]) -> Reason | None:
    """Use the load average only if nothing better is known: it includes the previous trial."""
    loads = {
        host: {"load": facts["load1"] / facts["cpus"]}
        for host, facts in hosts.items()
        if facts.get("busy_share") is None and facts.get("load1") is not None and facts.get("cpus")
    }
    return _check_measured(
        "load_before",
        loads,
        "load",
        lambda load: f"the load was {format_number(load)} per core before the start",
    )


def _check_foreign_process(evidence: Evidence) -> Reason | None:
    return _check_used_by_others("busy_neighbour", evidence) or _check_used_by_others(
        "foreign_process", evidence
    )


def _check_used_by_others(code: str, evidence: Evidence) -> Reason | None:
    hosts = evidence.during
    issues = {
        host: (
            f"others used {format_quantity(facts['foreign_share'], 'cores')}{_format_names(facts)}"
        )
        for host, facts in hosts.items()
        if THRESHOLDS[code].is_broken_by(facts.get("foreign_share"))
    }
    return _build_hosts_reason(code, hosts, issues)


def _format_names(facts: Facts) -> str:
    processes = [
        f"{each['name']} {format_seconds(each['cpu_s'])}" for each in facts.get("foreign") or ()
    ]
    return f", mostly {', '.join(processes)}" if processes else ""


def _check_cpu_pressure(evidence: Evidence) -> Reason | None:
    others = THRESHOLDS["foreign_process"]
    with_others = {
        host: facts
        for host, facts in evidence.during.items()
        if others.is_broken_by(facts.get("foreign_share"))
    }
    return _check_measured(
        "cpu_pressure",
        with_others,
        "pressure_share",
        lambda share: f"processes waited for a CPU {_share(share)} of the time",
    )


def _check_steal(evidence: Evidence) -> Reason | None:
    return _check_measured(
        "steal",
        evidence.during,
        "steal_share",
        lambda share: f"the hypervisor took {_share(share)} of the CPUs' time",
    )


def _check_virus_scan(evidence: Evidence) -> Reason | None:
    rule, hosts = THRESHOLDS["virus_scan"], evidence.during
    issues = {}
    for host, facts in hosts.items():
        seconds = facts.get("seconds")
        for each in facts.get("foreign") or ():
            cores = each["cpu_s"] / seconds if seconds else None
            if each["name"] in _SCANNERS and cores and rule.is_broken_by(cores):
                issues[host] = f"{each['name']} used {format_quantity(cores, 'cores')}"
    return _build_hosts_reason("virus_scan", hosts, issues)


def _check_clock_drop(evidence: Evidence) -> Reason | None:
    """Judge the server's host only: an idle CPU may lower its clock."""
    rule, clocks = THRESHOLDS["clock_drop"], list(_iterate_clocks_under_load(evidence))
    if len(clocks) < MIN_CLOCKS or not rule.is_broken_by(min(clocks) / max(clocks)):
        return None
    return rule.build_reason(
        f"the clock went down to {format_value(min(clocks), 'MHz')}, "
        f"{_share(min(clocks) / max(clocks))} of {format_value(max(clocks), 'MHz')}"
    )


def _iterate_clocks_under_load(evidence: Evidence) -> Iterator[float]:
    for earlier, later in pairwise(evidence.samples):
        clock, used = later.get("clock_mhz"), later.get("server_cpu_s")
        if clock is None or used is None or earlier.get("server_cpu_s") is None:
            continue
        if used - earlier["server_cpu_s"] >= _UNDER_LOAD * (later["t"] - earlier["t"]):
            yield clock


def _check_heating(evidence: Evidence) -> Reason | None:
    """Compare the last third with the one before: every host warms up in the first seconds."""
    rule = THRESHOLDS["heating"]
    read = (each.get("temperature_c") for each in evidence.samples)
    known = [each for each in read if each is not None]
    if len(known) < MIN_SAMPLES:
        return None
    size = len(known) // 3
    first, last = (statistics.median(part) for part in (known[-2 * size : -size], known[-size:]))
    if not rule.is_broken_by(last - first):
        return None
    return rule.build_reason(
        f"it was {format_value(last - first, '°C')} hotter at the end, {format_value(last, '°C')}"
    )


def _find_battery_reason(evidence: Evidence) -> Reason | None:
    issues = {
        host: "it ran on battery"
        for looks in (evidence.before, evidence.during)
        for host, facts in looks.items()
        if facts.get("on_battery")
    }
    return _build_hosts_reason("on_battery", {**evidence.before, **evidence.during}, issues)


def _check_ports(evidence: Evidence) -> Reason | None:
    hosts = evidence.during
    issues = {
        host: "no port was free for a further connection"
        for host, facts in hosts.items()
        if facts.get("ports_exhausted")
    }
    return _build_hosts_reason("ports_exhausted", hosts, issues)


def _check_clock_step(evidence: Evidence) -> Reason | None:
    sizes = {
        host: {"step": abs(facts["clock_step_s"])}
        for host, facts in evidence.during.items()
        if facts.get("clock_step_s") is not None
    }
    return _check_measured(
        "clock_stepped",
        sizes,
        "step",
        lambda step: f"the clock was set by {format_quantity(step, 's')}",
    )


def _check_reboot(evidence: Evidence) -> Reason | None:
    before, during = evidence.before, evidence.during
    issues = {
        host: "the boot id changed"
        for host in before.keys() & during.keys()
        if None not in (boots := (before[host].get("boot_id"), during[host].get("boot_id")))
        and boots[0] != boots[1]
    }
    return _build_hosts_reason("rebooted", during, issues)


def _build_counter_check(code: str, key: str, what: str) -> Callable[[Evidence], Reason | None]:
    def check(evidence: Evidence) -> Reason | None:
        return _check_measured(code, evidence.during, key, lambda count: f"{count} {what}")

    return check


def _check_retransmissions(evidence: Evidence) -> Reason | None:
    return _check_measured(
        "retransmissions",
        evidence.during,
        "retransmitted_share",
        lambda share: f"{_share(share)} of the TCP segments were sent again",
    )


CHECKS: tuple[Callable[[Evidence], Reason | None], ...] = (
    _check_idle_before,
    _check_foreign_process,
    _check_cpu_pressure,
    _check_steal,
    _check_virus_scan,
    _check_clock_drop,
    _check_heating,
    _build_counter_check(
        "throttled_by_heat", "throttle_count", "times the CPU was throttled because of heat"
    ),
    _find_battery_reason,
    _build_counter_check("swapping", "swapped_pages", "pages were swapped out or in"),
    _build_counter_check(
        "foreign_quota", "quota_periods", "times a CPU quota of a parent group was used up"
    ),
    _check_ports,
    _build_counter_check(
        "listen_overflow", "listen_overflows", "connections found the listen queue full"
    ),
    _check_retransmissions,
    _check_clock_step,
    _check_reboot,
)
