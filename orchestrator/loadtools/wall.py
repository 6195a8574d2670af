"""How long a start of a load tool may take before it is ended."""

from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.problems import expected_rows

#: Start, connect, write and end of the tool, beside the load itself.
_SLACK_S = 10.0
#: A count of requests without a guess of the rate gets this long at least.
_UNKNOWN_LIMIT_S = 600.0
_SLOWEST_RATE = 1_000.0


def wall_limit_s(spec: LoadSpec, warmup_s: float, seconds_per_row: float) -> float:
    """Seconds until the slowest good end of the measuring load.

    `warmup_s`: as far as it is inside of the load. `seconds_per_row`: what the tool needs after
    the load for each request.
    """
    loading = counted_s(spec) if spec.duration_s is None else warmup_s + spec.duration_s
    writing = seconds_per_row * (expected_rows(spec) or 0.0)
    return loading + waiting_s(spec) + writing


def waiting_s(spec: LoadSpec) -> float:
    """Of a start that ends by a duration, beside that duration."""
    return spec.request_timeout_s + spec.connect_timeout_s + _SLACK_S


def counted_s(spec: LoadSpec) -> float:
    """Seconds that a count of requests may take; three times what a known rate needs."""
    requests = spec.requests or 0
    rate = spec.rate or spec.expected_rate
    if rate:
        return 3 * requests / rate
    all_time_out = requests * spec.request_timeout_s / spec.at_once
    return max(min(all_time_out, _UNKNOWN_LIMIT_S), requests / _SLOWEST_RATE)
