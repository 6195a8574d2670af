"""The summary of the states of a large fleet, and its targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from orchestrator.dispatch.wakeups import ADVANCE
from perf.dispatch.fleet_meter import FleetUsage
from perf.harness.report import Requirement, render_table

WANTED: dict[str, Requirement | None] = {
    "fleet_idle_percent_of_a_core": Requirement(relation="<=", limit=5),
    "fleet_idle_queries_a_minute": None,
    "fleet_measuring_percent_of_a_core": None,
    "fleet_measuring_cpu_ms_a_host_minute": None,
    "fleet_measuring_queries_a_host_minute": None,
    "fleet_poll_delay_p50_s": Requirement(relation="<=", limit=1),
    "fleet_poll_delay_p99_s": None,
    "fleet_start_cpu_ms_a_host": None,
    "fleet_start_queries_a_host": None,
    "fleet_starts_a_minute": None,
    "fleet_absent_percent_of_a_core": None,
    "wake_ups_tasks": Requirement(relation="<=", limit=50),
    "wake_ups_queries": None,
    "wake_ups_all_sent_tasks": None,
    "wake_ups_all_sent_queries": None,
}
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """The usage in each state.

    `delays_s`: how late polls were while all hosts measured. `memory_bytes`: of each service then.
    `marked` and `unmarked`: `wake_ups` of one job, as Pitwall sends them and with a message each.
    """

    hosts: int
    idle: FleetUsage
    start: FleetUsage
    busy: FleetUsage
    absent: FleetUsage
    delays_s: Sequence[float]
    memory_bytes: dict[str, int]
    wake_ups: int
    marked: FleetUsage
    unmarked: FleetUsage


def get_measured(result: FleetResult) -> dict[str, float]:
    """Return the values with the keys of WANTED."""
    idle, busy, start = result.idle, result.busy, result.start
    host_minutes = result.hosts * busy.minutes
    delays = quantiles(result.delays_s, n=100)
    return {
        "fleet_idle_percent_of_a_core": idle.percent_of_a_core,
        "fleet_idle_queries_a_minute": idle.statements / idle.minutes,
        "fleet_measuring_percent_of_a_core": busy.percent_of_a_core,
        "fleet_measuring_cpu_ms_a_host_minute": _sum_cpu_ms(busy) / host_minutes,
        "fleet_measuring_queries_a_host_minute": busy.statements / host_minutes,
        "fleet_poll_delay_p50_s": delays[49],
        "fleet_poll_delay_p99_s": delays[98],
        "fleet_start_cpu_ms_a_host": _sum_cpu_ms(start) / result.hosts,
        "fleet_start_queries_a_host": start.statements / result.hosts,
        "fleet_starts_a_minute": result.hosts / start.minutes,
        "fleet_absent_percent_of_a_core": result.absent.percent_of_a_core,
        "wake_ups_tasks": result.marked.tasks.get(_NAME, 0),
        "wake_ups_queries": result.marked.statements,
        "wake_ups_all_sent_tasks": result.unmarked.tasks.get(_NAME, 0),
        "wake_ups_all_sent_queries": result.unmarked.statements,
    }


_NAME = ADVANCE.rpartition(".")[2]


def format_table(result: FleetResult) -> str:
    """Return the tables for people; the limit is next to the value that has one."""
    measured = get_measured(result)
    rows = [(key, f"{measured[key]:.2f}", str(want or "")) for key, want in WANTED.items()]
    services = [
        (
            name,
            *(f"{100 * usage.cpu_s[name] / (60 * usage.minutes):.2f}" for usage in _list(result)),
            f"{result.memory_bytes[name] / _MIB:.0f}",
        )
        for name in result.idle.cpu_s
    ]
    tasks = [
        (name, *(f"{usage.tasks.get(name, 0) / usage.minutes:.0f}" for usage in _list(result)))
        for name in sorted({name for usage in _list(result) for name in usage.tasks})
    ]
    states = ("idle", "starting", "measuring", "absent")
    return "\n\n".join(
        [
            render_table((f"{result.hosts} hosts", "measured", "wanted"), rows),
            render_table(("% of a core", *states, "MiB"), services),
            render_table(("Tasks a minute", *states), tasks),
        ]
    )


def list_details(result: FleetResult) -> dict[str, Any]:
    names = ("idle", "starting", "measuring", "absent", "woken", "woken with all sent")
    usages = (*_list(result), result.marked, result.unmarked)
    return {
        "hosts": result.hosts,
        "polls": len(result.delays_s),
        "wake_ups": result.wake_ups,
        "memory_bytes": result.memory_bytes,
        "states": {
            name: {
                "seconds": round(60 * usage.minutes, 1),
                "cpu_s": {service: round(used, 2) for service, used in usage.cpu_s.items()},
                "statements": usage.statements,
                "tasks": {task: count for task, count in usage.tasks.items() if count},
            }
            for name, usage in zip(names, usages, strict=True)
        },
    }


def _list(result: FleetResult) -> tuple[FleetUsage, ...]:
    return result.idle, result.start, result.busy, result.absent


def _sum_cpu_ms(usage: FleetUsage) -> float:
    return 1000 * sum(usage.cpu_s.values())
