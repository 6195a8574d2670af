"""What oha left behind → a canonical reading. Every number that is judged comes from the rows.

oha's own figures are kept under `oha.*` and used only to prove that rows and JSON belong together.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.loadtools.metrics import (
    FIRST_BYTE_PERCENTILES,
    LATENCY_LABELS,
    PERCENTILES,
    percentile_key,
)
from orchestrator.loadtools.model import (
    Distribution,
    LoadFacts,
    ToolOutputError,
    TrialReading,
    is_supported,
)
from orchestrator.loadtools.oha_argv import load_facts
from orchestrator.loadtools.oha_errors import classify
from orchestrator.loadtools.oha_figures import OHA_FIGURES
from orchestrator.loadtools.validity import Evidence, judge, loading_s

_SECTIONS = ("summary", "latencyPercentiles", "statusCodeDistribution", "errorDistribution")
_MEANS = {
    "latency.first_byte.mean": ("details", "firstByte", "average"),
    "connect.mean": ("details", "DNSDialup", "average"),
    "dns.mean": ("details", "DNSLookup", "average"),
}


def read_trial(
    tool_json: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
) -> TrialReading:
    """See `Oha.parse`."""
    output = _output(tool_json)
    try:
        return _reading(output, rows, result)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ToolOutputError(
            f"rows.json or result.json of the trial: {type(error).__name__}: {error}; "
            "was it written by an agent of another version?"
        ) from error


def _output(tool_json: bytes) -> dict[str, Any]:
    try:
        output = json.loads(tool_json)
    except ValueError as error:
        start = tool_json[:80].decode(errors="replace")
        raise ToolOutputError(f"oha's output is no JSON ({error}): {start!r}") from error
    if not isinstance(output, dict):
        raise ToolOutputError(f"oha's output is a {type(output).__name__}, expected an object")
    missing = [name for name in _SECTIONS if not isinstance(output.get(name), dict)]
    if missing:
        raise ToolOutputError(f"oha's output lacks {', '.join(missing)}: is it oha 1.14 or newer?")
    return output


def _reading(
    output: Mapping[str, Any], rows: Mapping[str, Any], result: Mapping[str, Any]
) -> TrialReading:
    ok, other = _distribution(rows["ok"]), _distribution(rows["other"])
    load = load_facts(result["argv"], warmup_s=float(rows["window"]["start_s"] or 0.0))
    by_status = {int(code): n for code, n in output["statusCodeDistribution"].items()}
    errors, truncated, texts = classify(output["errorDistribution"])
    window_end_s = _window_end_s(load, rows, result)
    planned = _planned(load)
    delivered = None if planned is None else ok.n / planned
    readings = {
        **_from_rows(ok, other, rows, load, window_end_s),
        **_from_counts(by_status, errors),
        **_from_usage(rows, result, load),
        **_from_json(output, rows),
    }
    if delivered is not None:
        readings["requests.delivered_ratio"] = delivered
    evidence = Evidence(
        load=load,
        ok=ok,
        other=other,
        answered_of_load=rows["all"]["n"],
        errors=errors,
        truncated=truncated,
        delivered=delivered,
        rate=readings.get("requests.rate"),
        tool_share=readings.get("cpu.tool_share"),
        rows_match=_rows_match(output, rows),
        result=result,
    )
    return TrialReading(
        tool="oha",
        tool_version=(result.get("tool") or {}).get("version"),
        load=load,
        window_start_s=load.warmup_s,
        window_end_s=window_end_s,
        readings=readings,
        ok=ok,
        other=other,
        by_status=by_status,
        errors=errors,
        error_texts=texts,
        truncated=truncated,
        planned=planned,
        delivered=delivered,
        slices=tuple(rows.get("slices") or ()),
        validity=judge(evidence),
        notes=(LATENCY_LABELS[load.model],),
    )


def _distribution(part: Mapping[str, Any]) -> Distribution:
    return Distribution(value_us=tuple(part["value_us"]), count=tuple(part["count"]))


def _window_end_s(
    load: LoadFacts, rows: Mapping[str, Any], result: Mapping[str, Any]
) -> float | None:
    """A load with a duration ends when it was told to.

    Every request that starts before then is counted, also the last to be answered: an end at the
    last answer would let one straggler lower the rate.
    """
    if load.duration_s is not None and not result.get("hung"):
        return load.warmup_s + load.duration_s
    end: float | None = rows["window"]["end_s"]
    return end


def _planned(load: LoadFacts) -> float | None:
    """Requests that were due in the window of an open load."""
    if load.rate is None:
        return None
    if load.duration_s is not None:
        return load.rate * load.duration_s
    return None if load.requests is None else float(load.requests)


def _from_rows(
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
        readings["throughput.bytes_per_s"] = rows["bytes"] / span_s
    latencies = {
        "latency.mean": ok.mean_s(),
        "latency.sd": ok.deviation_s(),
        "latency.min": ok.value_us[0] / 1e6 if ok.n else None,
        "latency.max": ok.value_us[-1] / 1e6 if ok.n else None,
        **{percentile_key(each): ok.percentile_s(each) for each in PERCENTILES},
    }
    readings.update({key: value for key, value in latencies.items() if value is not None})
    return readings


def _from_counts(by_status: Mapping[int, int], errors: Mapping[str, int]) -> dict[str, float]:
    failed = sum(errors.values())
    done = sum(by_status.values()) + failed
    readings = {"requests.errors": float(failed)}
    if done:
        good = sum(n for status, n in by_status.items() if 200 <= status < 400)
        readings["success.ratio"] = good / done
    return readings


def _from_usage(
    rows: Mapping[str, Any], result: Mapping[str, Any], load: LoadFacts
) -> dict[str, float]:
    """CPU is that of the whole measuring load, so it is shared among all of its answers."""
    usage = result.get("usage") or {}
    server_cpu_s, tool_cpu_s = usage.get("server_cpu_s"), usage.get("tool_cpu_s")
    answered, wall_s = rows["all"]["n"], loading_s(result)
    readings = {}
    if server_cpu_s is not None and answered:
        readings["cpu.seconds_per_1k"] = server_cpu_s / answered * 1000
    if tool_cpu_s is not None and wall_s:
        readings["cpu.tool_share"] = tool_cpu_s / (wall_s * load.tool_cpus)
    if usage.get("server_peak_rss_bytes") is not None:
        readings["memory.server_peak"] = float(usage["server_peak_rss_bytes"])
    return readings


def _from_json(output: Mapping[str, Any], rows: Mapping[str, Any]) -> dict[str, float]:
    """oha's own figures; what is null, missing or not a number is left out."""
    figures = {
        figure.key: value * figure.factor
        for figure in OHA_FIGURES
        if (value := _number(output, figure.path)) is not None
    }
    means = {
        key: value for key, path in _MEANS.items() if (value := _number(output, path)) is not None
    }
    first_byte = {
        percentile_key(percentile, "latency.first_byte"): value
        for percentile in FIRST_BYTE_PERCENTILES
        if is_supported(percentile, rows["all"]["n"])
        and (value := _number(output, ("firstBytePercentiles", f"p{percentile:g}"))) is not None
    }
    return {**figures, **means, **first_byte}


def _number(output: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = output
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _rows_match(output: Mapping[str, Any], rows: Mapping[str, Any]) -> bool:
    """Whether rows and JSON tell of the same requests: same number, same bits."""
    answered = sum(output["statusCodeDistribution"].values())
    return rows["all"]["n"] == answered and all(_same_percentiles(output, rows))


def _same_percentiles(output: Mapping[str, Any], rows: Mapping[str, Any]) -> Iterator[bool]:
    from_rows = rows["all"]["percentiles"]
    for name, value in output["latencyPercentiles"].items():
        yield from_rows.get(name) == value
