"""Other work on the hosts before and during the load; unknown values give no reason."""

import statistics
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from agents.hostagent.platform.topology import format_cpus
from cli.pitwall.units import format_number, format_seconds, format_value
from orchestrator.loadtools.costs import compute_loading_s
from orchestrator.loadtools.evidence import Evidence
from orchestrator.loadtools.model import Reason
from orchestrator.loadtools.thresholds import THRESHOLDS, format_quantity

#: Samples required to judge clock and temperature.
MIN_SAMPLES = 6
MIN_CLOCKS = 3
#: In a shorter load, the start of the sampling has too much weight.
SHORTEST_S = 5.0
#: A server that used this much of a core in the previous second needed its clock.
_UNDER_LOAD = 0.5
#: Hosts are not trusted: the limits of settings in a reason, and of their texts.
_MOST_SETTINGS, _NAME_LENGTH, _PROBLEM_LENGTH = 10, 30, 300
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
            f"others used {format_quantity(facts['foreign_share'], 'cores')}"
            f"{_format_siblings(evidence, host)}{_format_names(facts)}"
        )
        for host, facts in hosts.items()
        if THRESHOLDS[code].is_broken_by(facts.get("foreign_share"))
    }
    return _build_hosts_reason(code, hosts, issues)


def _format_siblings(evidence: Evidence, host: str) -> str:
    siblings = (evidence.placements.get(host) or {}).get("siblings")
    if not siblings:
        return ""
    return f" on the CPUs of the trial or their siblings (CPUs {format_cpus(siblings)})"


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


def _check_agent(evidence: Evidence) -> Reason | None:
    """Judge the agent of the server's host."""
    spent_s = (evidence.result.get("usage") or {}).get("sampler_cpu_s")
    loading_s = compute_loading_s(evidence.result)
    if spent_s is None or loading_s is None or loading_s < SHORTEST_S:
        return None
    rule, cores = THRESHOLDS["agent_cpu"], spent_s / loading_s
    if not rule.is_broken_by(cores):
        return None
    return rule.build_reason(f"the agent used {format_quantity(cores, 'cores')}")


def _check_log(evidence: Evidence) -> Reason | None:
    return _check_measured(
        "chatty_log",
        evidence.during,
        "log_bytes_per_s",
        lambda rate: f"the measured processes wrote {format_quantity(rate, 'B/s')} of output",
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


def _check_suspension(evidence: Evidence) -> Reason | None:
    return _check_measured(
        "suspended",
        evidence.during,
        "suspended_s",
        lambda asleep: f"the machine was asleep for {format_quantity(asleep, 's')}",
    )


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


def _check_throttling(evidence: Evidence) -> Reason | None:
    """Judge the counter of Intel CPUs, and the state of cooling devices of all others."""
    rule, hosts = THRESHOLDS["throttled_by_heat"], evidence.during
    issues = {}
    for host, facts in hosts.items():
        if rule.is_broken_by(facts.get("throttle_count")):
            issues[host] = f"{facts['throttle_count']} times the CPU was throttled because of heat"
        elif rule.is_broken_by(facts.get("cooling_state")):
            issues[host] = f"a cooling device slowed the CPU down (state {facts['cooling_state']})"
    return _build_hosts_reason("throttled_by_heat", hosts, issues)


def _check_clock_limit(evidence: Evidence) -> Reason | None:
    rule, hosts = THRESHOLDS["clock_limited"], evidence.during
    issues = {}
    for host, facts in hosts.items():
        low, high = facts.get("clock_limit_mhz") or (None, None)
        if low and high and rule.is_broken_by(low / high):
            spans = f"from {format_value(high, 'MHz')} to {format_value(low, 'MHz')}"
            issues[host] = f"the highest allowed clock changed {spans}"
    return _build_hosts_reason("clock_limited", hosts, issues)


def _check_base_clock(evidence: Evidence) -> Reason | None:
    rule, hosts = THRESHOLDS["clock_below_base"], evidence.during
    issues = {}
    for host, facts in hosts.items():
        base, (_, high) = facts.get("clock_base_mhz"), facts.get("clock_mhz") or (None, None)
        if base and high and rule.is_broken_by(high / base):
            clocks = f"{format_value(high, 'MHz')}, below its base of {format_value(base, 'MHz')}"
            issues[host] = f"the clock did not exceed {clocks}"
    return _build_hosts_reason("clock_below_base", hosts, issues)


def _check_refused_tuning(evidence: Evidence) -> Reason | None:
    refused = {
        host: (facts.get("tuning") or {}).get("refused") for host, facts in evidence.before.items()
    }
    return _build_settings_reason("tuning_refused", evidence.before, refused, "was not set")


def _check_changed_settings(evidence: Evidence) -> Reason | None:
    changed = {host: facts.get("changed_settings") for host, facts in evidence.during.items()}
    return _build_settings_reason(
        "tuning_changed", evidence.during, changed, "was changed by something else"
    )


def _build_settings_reason(
    code: str,
    hosts: Mapping[str, Facts],
    settings: Mapping[str, Mapping[str, Any] | None],
    what: str,
) -> Reason | None:
    """Return a reason for the hosts with such settings: {setting: file and problem}."""
    issues = {
        host: "; ".join(
            f"{name[:_NAME_LENGTH]} {what}: {str(problem)[:_PROBLEM_LENGTH]}"
            for name, problem in list(each.items())[:_MOST_SETTINGS]
        )
        for host, each in settings.items()
        if each
    }
    return _build_hosts_reason(code, hosts, issues)


def _build_counter_check(code: str, key: str, what: str) -> Callable[[Evidence], Reason | None]:
    def check(evidence: Evidence) -> Reason | None:
        return _check_measured(code, evidence.during, key, lambda count: f"{count} {what}")

    return check


def _check_retransmissions(evidence: Evidence) -> Reason | None:
    network = evidence.spec.network
    if network is not None and network.may_lose:
        return None
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
    _check_agent,
    _check_log,
    _check_steal,
    _check_virus_scan,
    _check_clock_drop,
    _check_heating,
    _check_clock_limit,
    _check_base_clock,
    _check_throttling,
    _check_refused_tuning,
    _check_changed_settings,
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
    _check_suspension,
    _check_reboot,
)
