"""Costs of the responses: CPU, memory, bytes and energy of the hosts, over the whole measured load.

The costs include a warm-up inside the load, so they are divided by all its responses.
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.loadtools.model import LoadFacts


def compute_loading_s(result: Mapping[str, Any]) -> float | None:
    """Return the duration of the measured load in seconds, including the tool's start and end."""
    started, ended = result.get("load_started_at"), result.get("load_ended_at")
    if started is None or ended is None or ended <= started:
        return None
    return float(ended - started)


def read_tool_quota(result: Mapping[str, Any]) -> float | None:
    """Return the CPU quota of the load tool in CPUs; None without a quota in effect."""
    applied = (result.get("limits") or {}).get("tool") or {}
    quota: float | None = applied.get("cpu_quota")
    return quota


def compute_costs(
    rows: Mapping[str, Any], result: Mapping[str, Any], load: LoadFacts
) -> dict[str, float]:
    """Return readings by metric key; values that the host did not report are absent."""
    usage = result.get("usage") or {}
    answered, wall_s = rows["all"]["n"], compute_loading_s(result)
    totals = {
        "cpu.seconds_per_1k": usage.get("server_cpu_s"),
        "cpu.tool_seconds_per_1k": usage.get("tool_cpu_s"),
        "cpu.services_seconds_per_1k": usage.get("services_cpu_s"),
        "network.bytes_per_1k": _sum_network_bytes(result),
        "energy.joules_per_1k": _sum_hosts(result, "energy_j"),
    }
    readings = {
        key: value / answered * 1000
        for key, value in totals.items()
        if value is not None and answered
    }
    for key, name in (
        ("memory.server_peak", "server_peak_rss_bytes"),
        ("memory.tool_peak", "tool_peak_rss_bytes"),
    ):
        if usage.get(name) is not None:
            readings[key] = float(usage[name])
    if usage.get("tool_cpu_s") is not None and wall_s:
        busy_s = wall_s
        if load.duration_s is not None:
            # A tool that waits at its end until connections time out would look less busy.
            busy_s = min(wall_s, load.warmup_s + load.duration_s)
        allowed = min(load.tool_cpus, read_tool_quota(result) or load.tool_cpus)
        readings["cpu.tool_share"] = usage["tool_cpu_s"] / (busy_s * allowed)
    counted = sum(rows["ok"]["count"]) + sum(rows["other"]["count"])
    if rows["bytes"] is not None and counted:
        readings["body.bytes_per_1k"] = rows["bytes"] / counted * 1000
    return readings


def _sum_network_bytes(result: Mapping[str, Any]) -> float | None:
    """Return the bytes of both directions, each counted once: the bytes that hosts sent."""
    return _sum_hosts(result, "octets_out")


def _sum_hosts(result: Mapping[str, Any], key: str) -> float | None:
    """Return None unless every host of the trial reported the value."""
    values = [host.get(key) for host in (result.get("interference") or {}).values()]
    if not values or None in values:
        return None
    return float(sum(value for value in values if value is not None))
