"""The time limit of a start of a load tool."""

from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.problems import estimate_rows

#: Overhead of the tool outside the load: start, connect, write and end.
_SLACK_S = 10.0
#: The minimum time limit for a number of requests without a known rate.
_UNKNOWN_LIMIT_S = 600.0
_SLOWEST_RATE = 1_000.0


def estimate_wall_s(spec: LoadSpec, warmup_s: float, seconds_per_row: float) -> float:
    """Return the time limit of the measured load in seconds.

    `warmup_s`: the part of the warm-up inside the load. `seconds_per_row`: the tool's time per
    request after the load.
    """
    loading = estimate_counted_s(spec) if spec.duration_s is None else warmup_s + spec.duration_s
    writing = seconds_per_row * (estimate_rows(spec) or 0.0)
    return loading + estimate_waiting_s(spec) + writing


def estimate_waiting_s(spec: LoadSpec) -> float:
    """Return the seconds that a start with a duration may take in addition to it."""
    return spec.request_timeout_s + spec.connect_timeout_s + spec.idle_s + _SLACK_S


def estimate_counted_s(spec: LoadSpec) -> float:
    """Return the time limit of a number of requests in seconds: three times a known rate's."""
    requests = spec.requests or 0
    rate = spec.rate or spec.expected_rate
    if rate:
        return 3 * requests / rate
    all_time_out = requests * spec.request_timeout_s / spec.at_once
    return max(min(all_time_out, _UNKNOWN_LIMIT_S), requests / _SLOWEST_RATE)
