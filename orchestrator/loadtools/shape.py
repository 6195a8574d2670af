"""Whether the load was as requested, and whether the tool was able to measure it."""

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from cli.pitwall.units import format_number
from orchestrator.loadtools.costs import read_tool_quota
from orchestrator.loadtools.evidence import Evidence
from orchestrator.loadtools.model import Reason
from orchestrator.loadtools.thresholds import THRESHOLDS, format_quantity
from orchestrator.stats.steady import compute_drift, compute_mser5

#: Samples of the connections required for a reason.
MIN_LOOKS = 3
#: Until then, connections are still being opened.
_OPENED_S = 0.5
#: The median of fewer responses is not representative of their second.
_MIN_ANSWERS = 10
#: With fewer consecutive requests per connection, its beginning and end are much of the window.
_FEWEST_IN_TURN = 20
#: Without a trend, the thirds may differ by the noise from second to second. With this alpha, 1.5 %
#: of 26,400 shuffled windows of 9 or 10 s were flagged; without a test, 8.2 %.
_TREND_ALPHA = 0.05


def _check_protocol(evidence: Evidence) -> Reason | None:
    protocol = evidence.spec.protocol
    # gRPC is HTTP/2 for tools that do not look inside.
    good = {"grpc", "h2"} if protocol == "grpc" else {protocol}
    others = [spoken for spoken in evidence.spoken if spoken not in good]
    if not others:
        return None
    observation = f"{', '.join(others)} was used instead of {protocol}"
    return THRESHOLDS["protocol"].build_reason(observation)


def _check_response_size(evidence: Evidence) -> Reason | None:
    length = evidence.rows.get("length")
    declared = evidence.spec.response_bytes
    good = declared or _find_size_range(evidence)
    if not length or good is None:
        return None
    if good[0] <= length["min"] and length["max"] <= good[1]:
        return None
    observation = (
        f"the answers had {_format_span(length['min'], length['max'])} bytes instead of "
        f"{_format_span(*good)}"
    )
    return THRESHOLDS["response_size" if declared else "response_changed"].build_reason(observation)


def _find_size_range(evidence: Evidence) -> tuple[int, int] | None:
    """Return the body sizes in checks of the load's own request, if its responses should not vary.

    Tools differ in whether they count bytes before or after decoding a content coding.
    """
    if evidence.spec.random_path is not None or evidence.spec.protocol == "grpc":
        return None
    mine = [each for each in evidence.result.get("checks") or () if each.get("name") == "load"]
    plain = [each for each in mine if each.get("encoding") in (None, "identity")]
    sizes = [each["length"] for each in plain if each.get("length") is not None]
    return (min(sizes), max(sizes)) if sizes and len(plain) == len(mine) else None


def _format_span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _check_connections(evidence: Evidence) -> Reason | None:
    """Skip open loops, which may need fewer, and HTTP/3, which has no TCP connections."""
    spec, connections = evidence.spec, evidence.load.connections
    counts = [
        sample["connections"]
        for sample in evidence.samples
        if sample.get("connections") is not None and sample["t"] >= _OPENED_S
    ]
    is_counted = spec.keepalive and spec.protocol != "h3" and not spec.command
    if evidence.load.model != "closed" or not is_counted or len(counts) < MIN_LOOKS:
        return None
    rule, most = THRESHOLDS["connections_missing"], max(counts)
    if not rule.is_broken_by(most / connections):
        return None
    return rule.build_reason(
        f"{most} of {connections} connections were open at a time, "
        f"{format_quantity(most / connections, 'share')}"
    )


def _check_tool_bound(evidence: Evidence) -> Reason | None:
    """Skip a client that is measured itself: it may be fully busy."""
    rule, share = THRESHOLDS["tool_bound"], evidence.tool_share
    if evidence.spec.client_measured or share is None or not rule.is_broken_by(share):
        return None
    quota = read_tool_quota(evidence.result)
    what = "its CPUs" if quota is None else f"its CPU quota of {quota:g}"
    return rule.build_reason(f"the load tool used {format_quantity(share, 'share')} of {what}")


def _check_shared_cpus(evidence: Evidence) -> Reason | None:
    on, limits = evidence.result.get("on") or {}, evidence.result.get("limits") or {}
    if on.get("server") is None or on.get("server") != on.get("tool"):
        return None
    if not limits.get("server") or not limits.get("tool"):
        return None
    server, tool = _list_cpus(limits["server"]), _list_cpus(limits["tool"])
    if server and tool and server.isdisjoint(tool):
        return _check_shared_cores(evidence.placements.get(on["server"]) or {})
    which = f"CPUs {_format_numbers(server & tool)}" if server and tool else "any CPU"
    return THRESHOLDS["shared_cpus"].build_reason(f"load tool and server both ran on {which}")


def _check_shared_cores(placement: Mapping[str, Any]) -> Reason | None:
    """Return a reason if they had other CPUs of the same physical cores."""
    if not any({"server", "tool"} <= {*names} for names in placement.get("shared") or ()):
        return None
    observation = f"load tool and server shared physical cores ({placement['problem']})"
    return THRESHOLDS["shared_cpus"].build_reason(observation)


def _list_cpus(applied: Mapping[str, Any]) -> frozenset[int]:
    """Return the CPU numbers; empty for any CPU."""
    return frozenset(applied.get("cpus") or ())


def _format_numbers(cpus: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(cpus)))


def _check_littles_law(evidence: Evidence) -> Reason | None:
    """Check closed loops with kept connections: the latency of most tools excludes connecting.

    If the client itself is measured, its work outside of requests is part of the result.
    """
    mean_s = evidence.ok.mean_s()
    if evidence.spec.client_measured:
        return None
    if evidence.load.model != "closed" or evidence.other.n or evidence.errors:
        return None
    if mean_s is None or evidence.rate is None or not evidence.spec.keepalive:
        return None
    rule = THRESHOLDS["littles_law"]
    in_flight = evidence.rate * mean_s
    expected = evidence.load.connections * evidence.load.streams
    if evidence.ok.n < _FEWEST_IN_TURN * expected:
        return None
    apart = abs(in_flight / expected - 1)
    if not rule.is_broken_by(round(apart, 9)):
        return None
    return rule.build_reason(
        f"rate × latency gives {format_number(in_flight)} requests under way where {expected} "
        f"could be, {format_quantity(apart, 'share')} apart"
    )


def _check_steady_state(evidence: Evidence) -> Reason | None:
    """Check the rate of a closed loop, or the median latency of an open one, by seconds."""
    what, values = _select_series(evidence)
    drift = None if None in values else compute_drift(values)
    if drift is None:
        return None
    rule = THRESHOLDS["no_steady_state"]
    if drift.p_value < _TREND_ALPHA and rule.is_broken_by(round(abs(drift.share), 9)):
        way = "above" if drift.share > 0 else "below"
        share = format_quantity(abs(drift.share), "share")
        return rule.build_reason(f"the {what} of the last third is {share} {way} that of the first")
    return _check_warm_up(what, values, drift.share)


def _select_series(evidence: Evidence) -> tuple[str, list[float]]:
    # The last slice ends with the window, so it may be shorter than a second.
    slices = list(evidence.rows.get("slices") or ())[:-1]
    if evidence.load.model == "closed":
        return "rate", [each.get("ok") for each in slices]
    return "p50", [each["p50_us"] for each in slices if (each.get("ok") or 0) >= _MIN_ANSWERS]


def _check_warm_up(what: str, values: list[float], moved: float) -> Reason | None:
    """Apply MSER-5, if it changes the result: noise alone often looks like no steady state."""
    rule, mser = THRESHOLDS["warm_up_too_short"], compute_mser5(values)
    if mser.reason == "no steady state" and rule.is_broken_by(abs(moved)):
        share = format_quantity(abs(moved), "share")
        return rule.build_reason(f"no end of the warm-up is found, the {what} moved by {share}")
    if not mser.cut:
        return None
    bias = abs(statistics.fmean(values) / statistics.fmean(values[mser.cut :]) - 1)
    if not rule.is_broken_by(bias):
        return None
    share = format_quantity(bias, "share")
    return rule.build_reason(
        f"the first {mser.cut} s of the window are still warm-up, and change the {what} by {share}"
    )


CHECKS: tuple[Callable[[Evidence], Reason | None], ...] = (
    _check_protocol,
    _check_response_size,
    _check_connections,
    _check_tool_bound,
    _check_shared_cpus,
    _check_littles_law,
    _check_steady_state,
)
