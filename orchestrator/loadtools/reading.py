"""The canonical reading of a trial, the same for every tool: from rows and environment to metrics.

Every judged value comes from the rows that the agent reduced. The tool's own values are stored with
them, and used to prove that both belong together.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.loadtools.costs import compute_costs
from orchestrator.loadtools.metrics import (
    LATENCY_LABELS,
    PERCENTILES,
    build_percentile_key,
    build_status_key,
)
from orchestrator.loadtools.model import (
    GARBAGE,
    Distribution,
    LoadFacts,
    LoadSpec,
    ToolOutputError,
    TrialReading,
)
from orchestrator.loadtools.validity import Evidence, judge

#: The statuses of one load that become metrics, the most frequent ones first.
MAX_STATUSES = 10


def parse_json_report(report: bytes, title: str) -> dict[str, Any]:
    """Return a tool's report, a JSON object; ToolOutputError, which names its `title`, if not."""
    try:
        output = json.loads(report)
    except GARBAGE as error:
        start = report[:80].decode(errors="replace")
        raise ToolOutputError(f"{title} is not JSON ({error}): {start!r}") from error
    if not isinstance(output, dict):
        raise ToolOutputError(f"{title} is a {type(output).__name__}, expected an object")
    return output


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """A tool's own report. None is a value that it does not report.

    `by_status` and `errors` count the whole load. `readings` are its own values by metric key.
    `matches`: the report describes the same requests as the rows. `protocol`: the protocol that it
    reports. `ended_s`: when it stopped counting, in seconds since the start of the load, if
    reported.
    """

    by_status: Mapping[int, int] | None = None
    errors: Mapping[str, int] | None = None
    error_texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    truncated: int = 0
    readings: Mapping[str, float] = field(default_factory=dict)
    matches: bool = True
    protocol: str | None = None
    ended_s: float | None = None


def build_reading(
    tool: str,
    spec: LoadSpec,
    report: ToolReport,
    rows: Mapping[str, Any],
    result: Mapping[str, Any],
) -> TrialReading:
    """Return the reading of one measured load of `spec`.

    `rows`: the agent's rows.json. `result`: its result.json, including the fields of the load.
    Raise ToolOutputError if the agent of this version could not have written one of them.
    """
    try:
        return _assemble_reading(tool, spec, report, rows, result)
    except GARBAGE as error:
        raise ToolOutputError(
            f"rows.json or result.json of the trial: {type(error).__name__}: {error}; "
            "was it written by an agent of another version?"
        ) from error


def _assemble_reading(
    tool: str,
    spec: LoadSpec,
    report: ToolReport,
    rows: Mapping[str, Any],
    result: Mapping[str, Any],
) -> TrialReading:
    ok, other = _build_distribution(rows["ok"]), _build_distribution(rows["other"])
    load = _load_facts(spec, rows, result)
    window_end_s = report.ended_s or _find_window_end_s(load, rows, result)
    planned = _count_planned(load)
    errors = report.errors if report.errors is not None else rows.get("errors")
    readings = {
        **_read_rows(ok, other, rows, load, window_end_s),
        **_compute_sent(spec, ok, load, window_end_s),
        **_read_counts(report.by_status, errors, spec.good_statuses),
        **compute_costs(rows, result, load),
        **{key: float(value) for key, value in (rows.get("tool_metrics") or {}).items()},
        **report.readings,
    }
    if planned is not None:
        readings["requests.delivered_ratio"] = ok.n / planned
    evidence = Evidence(
        spec=spec,
        load=load,
        ok=ok,
        other=other,
        answered_of_load=rows["all"]["n"],
        errors=errors,
        truncated=report.truncated,
        delivered=readings.get("requests.delivered_ratio"),
        rate=readings.get("requests.rate"),
        tool_share=readings.get("cpu.tool_share"),
        rows_match=report.matches,
        spoken=_list_protocols(report, rows, result),
        rows=rows,
        result=result,
    )
    return _build_trial_reading(tool, report, evidence, readings, planned, window_end_s)


def _build_trial_reading(
    tool: str,
    report: ToolReport,
    seen: Evidence,
    readings: Mapping[str, float],
    planned: float | None,
    window_end_s: float | None,
) -> TrialReading:
    return TrialReading(
        tool=tool,
        tool_version=(seen.result.get("tool") or {}).get("version"),
        load=seen.load,
        window_start_s=seen.load.warmup_s,
        window_end_s=window_end_s,
        readings=readings,
        ok=seen.ok,
        other=seen.other,
        by_status=report.by_status,
        errors=seen.errors,
        error_texts={**(seen.rows.get("error_texts") or {}), **report.error_texts},
        truncated=seen.truncated,
        protocol=seen.spoken[0] if seen.spoken else None,
        planned=planned,
        delivered=seen.delivered,
        slices=tuple(seen.rows.get("slices") or ()),
        validity=judge(seen),
        notes=(LATENCY_LABELS[seen.load.model],),
    )


def _build_distribution(part: Mapping[str, Any]) -> Distribution:
    return Distribution(value_us=tuple(part["value_us"]), count=tuple(part["count"]))


def _load_facts(spec: LoadSpec, rows: Mapping[str, Any], result: Mapping[str, Any]) -> LoadFacts:
    """Return the requested load, with the rate of this probe in a search."""
    cpus = ((result.get("limits") or {}).get("tool") or {}).get("cpus")
    return LoadFacts(
        model=spec.model,
        connections=spec.connections,
        streams=spec.streams,
        tool_cpus=int(result.get("tool_cpus") or len(cpus or ()) or 1),
        rate=result["rate"] if spec.searching else spec.rate,
        duration_s=spec.duration_s,
        requests=spec.requests,
        warmup_s=float(rows["window"]["start_s"] or 0.0),
    )


def _find_window_end_s(
    load: LoadFacts, rows: Mapping[str, Any], result: Mapping[str, Any]
) -> float | None:
    """Return when the window ends: for a load with a duration, after that duration.

    Every request that starts before then is counted, including the last one to be answered. If the
    window ended at the last response, one late response would lower the rate.
    """
    if load.duration_s is not None and not result.get("hung"):
        return load.warmup_s + load.duration_s
    end: float | None = rows["window"]["end_s"]
    return end


def _count_planned(load: LoadFacts) -> float | None:
    """Return the number of requests that were due in the window of an open load."""
    if load.rate is None:
        return None
    if load.duration_s is not None:
        return load.rate * load.duration_s
    return None if load.requests is None else float(load.requests)


def _read_rows(
    ok: Distribution,
    other: Distribution,
    rows: Mapping[str, Any],
    load: LoadFacts,
    window_end_s: float | None,
) -> dict[str, float]:
    readings: dict[str, float] = {
        "requests.ok": float(ok.n),
        "requests.answered": float(ok.n + other.n),
    }
    span_s = None if window_end_s is None else window_end_s - load.warmup_s
    if span_s and ok.n:
        readings["requests.rate"] = ok.n / span_s
        if rows["bytes"] is not None:
            readings["throughput.bytes_per_s"] = rows["bytes"] / span_s
    latencies = {
        "latency.mean": ok.mean_s(),
        "latency.sd": ok.deviation_s(),
        "latency.min": ok.value_us[0] / 1e6 if ok.n else None,
        "latency.max": ok.value_us[-1] / 1e6 if ok.n else None,
        **{build_percentile_key(each): ok.percentile_s(each) for each in PERCENTILES},
    }
    readings.update({key: value for key, value in latencies.items() if value is not None})
    return readings


def _compute_sent(
    spec: LoadSpec, ok: Distribution, load: LoadFacts, window_end_s: float | None
) -> dict[str, float]:
    """Return metrics of the bodies of good responses; a script may send any bodies."""
    span_s = None if window_end_s is None else window_end_s - load.warmup_s
    if spec.body is None or spec.command or not span_s or not ok.n:
        return {}
    return {"throughput.sent_bytes_per_s": ok.n * len(spec.body.encode()) / span_s}


def _read_counts(
    by_status: Mapping[int, int] | None,
    errors: Mapping[str, int] | None,
    good_statuses: Collection[int],
) -> dict[str, float]:
    """Return no error metrics if a tool does not report all errors.

    The shares of statuses are included unless all responses had the only good one.
    """
    if errors is None:
        return {}
    failed = sum(errors.values())
    readings = {"requests.errors": float(failed)}
    done = sum((by_status or {}).values()) + failed
    if by_status is not None and done:
        good = sum(n for status, n in by_status.items() if status in good_statuses)
        readings["success.ratio"] = good / done
        if len(by_status) > 1 or good < done:
            most = sorted(by_status, key=by_status.__getitem__, reverse=True)[:MAX_STATUSES]
            readings |= {build_status_key(each): by_status[each] / done for each in most if each}
    return readings


def _list_protocols(
    report: ToolReport, rows: Mapping[str, Any], result: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return every observed protocol of the load's own request, the tool's report first.

    Other checks may use another protocol on purpose: TCP for a load over HTTP/3.
    """
    seen = [report.protocol, rows.get("protocol")]
    seen += [
        check.get("protocol") for check in result.get("checks") or () if check["name"] == "load"
    ]
    return tuple(dict.fromkeys(each for each in seen if each))
