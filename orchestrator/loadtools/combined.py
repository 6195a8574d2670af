"""Combine the readings of a trial's measured loads (steps, or probes of a search) into one."""

from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from orchestrator.loadtools.metrics import (
    CAPACITY_SHARES,
    PERCENTILES,
    build_percentile_key,
    select_share_readings,
)
from orchestrator.loadtools.model import (
    Distribution,
    Level,
    Reason,
    ToolOutputError,
    TrialReading,
    Validity,
)
from orchestrator.loadtools.validity import drop_reasons

#: Reasons that an excessive load causes: a finding about a step or probe, not a fault of the trial.
CAUSED_BY_LOAD = frozenset(
    {
        "underdelivered", "transport_errors", "http_errors", "littles_law", "no_answers",
        "all_truncated", "target_unreachable", "empty_window", "no_steady_state", "server_died",
        "connections_missing", "response_size", "response_changed", "listen_overflow", "hung",
        "warm_up_too_short", "wrong_under_load", "body_changed", "answers_changed",
    }
)  # fmt: skip
#: Metrics that are averaged over loads, weighted by their number of responses.
_PER_ANSWER = (
    "cpu.seconds_per_1k", "cpu.tool_seconds_per_1k", "cpu.services_seconds_per_1k",
    "network.bytes_per_1k", "energy.joules_per_1k", "body.bytes_per_1k",
)  # fmt: skip
_SUMS = ("requests.ok", "requests.answered", "requests.errors")
_PEAKS = ("memory.server_peak", "memory.tool_peak", "cpu.tool_share")


def merge_distributions(parts: Sequence[Distribution]) -> Distribution:
    """Return the distribution of all their requests; exact, because it adds counts of values."""
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update(dict(zip(part.value_us, part.count, strict=True)))
    values = sorted(counts)
    return Distribution(value_us=tuple(values), count=tuple(counts[value] for value in values))


def combine_steps(steps: Sequence[TrialReading]) -> TrialReading:
    """Combine the steps of a stepped load; the values exclude steps with an excessive load.

    If all steps are excessive, the last one represents the trial. Raise ToolOutputError without any
    step.
    """
    if not steps:
        raise ToolOutputError("result.json: the trial has no measured load")
    if len(steps) == 1:
        return steps[0]
    kept = [step for step in steps if step.validity.level != Level.INVALID] or [steps[-1]]
    ok = merge_distributions([step.ok for step in kept])
    return replace(
        steps[0],
        readings=_merge_readings(kept, ok),
        ok=ok,
        other=merge_distributions([step.other for step in kept]),
        by_status=None,
        errors=None,
        truncated=sum(step.truncated for step in steps),
        planned=None,
        delivered=None,
        slices=(),
        validity=Validity(reasons=_merge_reasons(steps)),
    )


def combine_search(probes: Sequence[TrialReading], search: Mapping[str, Any]) -> TrialReading:
    """Return the reading of a trial with a search; `search` is the agent's result.

    It contains only the capacity, because the search chose the rates of its probes. A search that
    its budget has ended counts as well: without it, only servers that fail steeply would.
    """
    if not probes:
        raise ToolOutputError("result.json: the search has no probes")
    readings = {
        "capacity.rate": search["capacity"],
        "capacity.low": search["low"],
        "capacity.high": search["high"],
        "capacity.probes": len(search["probes"]),
    }
    reasons = [*_merge_reasons(probes), *_check_search_end(search)]
    known = {key: float(value) for key, value in readings.items() if value is not None}
    return _replace_readings(probes[0], known, reasons)


def combine_shares(loads: Sequence[TrialReading]) -> TrialReading:
    """Return the reading of loads at the shares of a capacity (`CAPACITY_SHARES`).

    Each load is an ordinary one at a rate, so an overload at one of them excludes the trial.
    """
    pairs = zip(CAPACITY_SHARES, loads, strict=True)
    readings = (select_share_readings(share, load.readings) for share, load in pairs)
    return _replace_readings(
        loads[0], dict(ChainMap(*readings)), _merge_reasons(loads, caused_by_load=frozenset())
    )


def _replace_readings(
    load: TrialReading, readings: Mapping[str, float], reasons: Sequence[Reason]
) -> TrialReading:
    """Return a reading of a trial whose loads have nothing in common but its readings."""
    return replace(
        load,
        readings=dict(readings),
        ok=Distribution(),
        other=Distribution(),
        by_status=None,
        errors=None,
        truncated=0,
        planned=None,
        delivered=None,
        slices=(),
        validity=Validity(reasons=tuple(reasons)),
    )


def _merge_readings(kept: Sequence[TrialReading], ok: Distribution) -> dict[str, float]:
    readings: dict[str, float] = {}
    for key in _SUMS:
        if all(key in step.readings for step in kept):
            readings[key] = sum(step.readings[key] for step in kept)
    spans = [
        step.readings["requests.ok"] / rate
        for step in kept
        if (rate := step.readings.get("requests.rate"))
    ]
    if spans and len(spans) == len(kept):
        readings["requests.rate"] = ok.n / sum(spans)
    for key in _PER_ANSWER:
        shares = [(step.readings.get(key), step.readings["requests.answered"]) for step in kept]
        total = sum(weight for _, weight in shares)
        if total and all(value is not None for value, _ in shares):
            readings[key] = sum((value or 0.0) * weight for value, weight in shares) / total
    for key in _PEAKS:
        values = [step.readings[key] for step in kept if key in step.readings]
        if values:
            readings[key] = max(values)
    latencies = {
        "latency.mean": ok.mean_s(),
        "latency.sd": ok.deviation_s(),
        "latency.min": ok.value_us[0] / 1e6 if ok.n else None,
        "latency.max": ok.value_us[-1] / 1e6 if ok.n else None,
        **{build_percentile_key(each): ok.percentile_s(each) for each in PERCENTILES},
    }
    return readings | {key: value for key, value in latencies.items() if value is not None}


def _merge_reasons(
    loads: Sequence[TrialReading], caused_by_load: Set[str] = CAUSED_BY_LOAD
) -> tuple[Reason, ...]:
    """Return the reasons that the load did not cause, each once with the number of its loads."""
    by_code: dict[str, list[Reason]] = {}
    for load in loads:
        for reason in drop_reasons(load.validity, caused_by_load):
            by_code.setdefault(reason.code, []).append(reason)
    return tuple(_merge_same_code(reasons, len(loads)) for reasons in by_code.values())


def _merge_same_code(reasons: Sequence[Reason], loads: int) -> Reason:
    worst = next((one for one in reasons if one.level == Level.INVALID), reasons[0])
    return replace(worst, message=f"in {len(reasons)} of {loads} loads: {worst.message}")


def _check_search_end(search: Mapping[str, Any]) -> list[Reason]:
    stopped = str(search["stopped"])
    if stopped == "converged":
        return []
    if stopped == "budget" and search["capacity"] is not None:
        width = 100 * (search["high"] / search["low"] - 1)
        message = (
            f"the 90 % interval of the capacity is {width:.0f} % wide, because the search ended "
            "before it was narrow and confirmed: allow more max_probes, or longer probes"
        )
        return [Reason(code="search_open", level=Level.SUSPECT, message=message)]
    messages = {
        "at the limit": "the objective still held at the highest rate that the search may try: "
        "raise search.high",
        "below the start": "the objective did not hold at the lowest rate: lower search.low, allow "
        "longer probes or ask for less",
        "budget": "all probes had the same result: allow more max_probes",
    }
    message = messages.get(stopped, f"the search stopped: {stopped}")
    return [Reason(code="search_open", level=Level.INVALID, message=message)]
