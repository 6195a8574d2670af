"""Input and output of every load tool.

Times are in seconds, latencies of distributions in whole microseconds. Unknown is None or absent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from orchestrator.core.errors import PitwallError
from orchestrator.loadtools.emulated_network import EmulatedNetwork

Model = Literal["closed", "open"]
Protocol = Literal["h1", "h2", "h3", "grpc"]

#: The field of a definition, and its problem.
Problem = tuple[str, str]

#: The number of requests beyond a percentile that are required to report it.
SUPPORTING_REQUESTS = 10
#: Names of protocols without and with TLS.
PROTOCOL_TITLES: dict[tuple[Protocol, bool], str] = {
    ("h1", False): "HTTP/1.1",
    ("h1", True): "HTTP/1.1 over TLS",
    ("h2", False): "h2c (HTTP/2 without TLS)",
    ("h2", True): "HTTP/2 over TLS",
    ("h3", True): "HTTP/3",
    ("grpc", False): "gRPC",
    ("grpc", True): "gRPC over TLS",
}


def is_supported(percentile: float, n: int) -> bool:
    """Return whether n requests support a percentile (0 to 100); the rule of `stats.summary`."""
    # The tolerance is needed because 100 − 99.9 is slightly below 0.1 in floating point.
    return n * (100 - percentile) >= 100 * SUPPORTING_REQUESTS - 1e-6


#: Exceptions from reading a corrupt report, rows or result: each becomes a ToolOutputError.
GARBAGE = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError,
    StopIteration,
)  # fmt: skip


class ToolOutputError(PitwallError):
    """The output of a load tool cannot be read; the message contains the part and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcCall:
    """`method` is `package.Service/Method`, `proto` a file in the built tree.

    Without one, server reflection describes the call. `data` is one message, or several for a
    stream of requests.
    """

    method: str
    proto: str | None = None
    data: Mapping[str, Any] | Sequence[Mapping[str, Any]] = field(default_factory=dict)
    import_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """One load, for any tool. It ends after `duration_s` or after `requests`; one of them is set.

    Closed: each stream of each connection sends its next request after the previous response. Open:
    requests are due at `rate` per second, and latency counts from the due time. With `searching`,
    the agent chooses the rate of each probe, and `rate` is the maximum. `random_path` is a regular
    expression that generates the path of each request, instead of `path`. h2 without TLS is prior
    knowledge. `compression`: the codings that the client accepts; None requests none.
    `response_bytes`: minimum and maximum body bytes of a good response, as received.
    `good_statuses`: the statuses of good responses, of HTTP or gRPC; scripts have their own.
    `volatile`: patterns of the parts of a body that may vary; None does not say what varies.
    `expected_rate` is an estimate of a closed loop's rate, which only limits rows and time.
    `command` and `parameters` are for the tool `script`. `client_measured`: the tool itself is
    measured. `network`: the emulated one; None is that of the hosts.
    """

    path: str
    connections: int
    streams: int = 1
    model: Model = "closed"
    rate: float | None = None
    searching: bool = False
    duration_s: float | None = None
    requests: int | None = None
    warmup_s: float = 0.0
    primer_s: float = 0.0
    protocol: Protocol = "h1"
    tls: bool = False
    random_path: str | None = None
    grpc: GrpcCall | None = None
    command: tuple[str, ...] = ()
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    request_timeout_s: float = 10.0
    connect_timeout_s: float = 5.0
    quic_idle_timeout_s: float = 30.0
    keepalive: bool = True
    compression: tuple[str, ...] | None = None
    response_bytes: tuple[int, int] | None = None
    good_statuses: tuple[int, ...] = (200,)
    volatile: tuple[str, ...] | None = None
    expected_rate: float | None = None
    client_measured: bool = False
    network: EmulatedNetwork | None = None

    @property
    def scheme(self) -> Literal["http", "https"]:
        return "https" if self.tls else "http"

    @property
    def rate_text(self) -> str:
        """Return the rate as an argument: a number, or the placeholder for the rate of a probe."""
        return "{probe_rate}" if self.searching else f"{self.rate:.15g}"

    @property
    def at_once(self) -> int:
        """Return the number of concurrent requests of a closed loop."""
        return self.connections * self.streams

    @property
    def idle_s(self) -> float:
        """Return how long oha waits after the load: over HTTP/3, until its connections time out."""
        waits = self.protocol == "h3" and self.rate is None and not self.command
        return self.quic_idle_timeout_s if waits else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One start of the tool. `argv` contains placeholders of the agent, such as {tool} {out}
    {port}.

    Rows that start before `warmup_s` are not counted (0 if the warm-up is a separate start).
    """

    argv: tuple[str, ...]
    kind: Literal["primer", "warmup", "measure"]
    wall_limit_s: float
    warmup_s: float = 0.0
    env: Mapping[str, str] = field(default_factory=dict)


Knowledge = Literal["yes", "no", "partly"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileErrors:
    """Measured errors of percentiles, in percent of the true value: the smallest and the largest.

    They are medians of three trials of a closed loop of 30 requests, against the log of a server
    with constant, uniform and bimodal delays (`make bench-fidelity`). `p99_with_pauses`: of a
    server that pauses for 0.1 s every 2 s.
    """

    p50: tuple[float, float]
    p99: tuple[float, float]
    p99_9: tuple[float, float]
    p99_with_pauses: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities of a tool: users read this sheet, and definitions are checked against it.

    `protocols` are pairs of protocol and TLS. `streams`: several concurrent requests per
    connection. `open_loop`: sends on time regardless of responses, latency counts from the due
    time. `warmup`: `inside` the measured load (separated by the times of rows) or a separate start
    (`apart`). `distribution`: `rows` (each request with its time), `buckets` (the whole
    distribution without times). `body_lengths`: reports the length of each body.
    `percentile_errors`: None if they are not known. `caveats` are facts that a reader of its values
    must know.
    """

    protocols: frozenset[tuple[Protocol, bool]]
    streams: bool = False
    open_loop: bool = False
    by_duration: bool = True
    by_count: bool = True
    random_path: bool = False
    methods: bool = True
    headers: bool = True
    body: bool = True
    keepalive_off: bool = False
    compression: bool = True
    request_timeout: bool = True
    connect_timeout: bool = True
    warmup: Literal["inside", "apart"] = "apart"
    distribution: Literal["rows", "buckets"] = "rows"
    status_codes: Knowledge = "yes"
    body_lengths: Knowledge = "no"
    errors: Knowledge = "yes"
    bytes_in: Knowledge = "yes"
    bytes_out: Knowledge = "no"
    reports_protocol: Knowledge = "no"
    verifies_certificate: bool = True
    percentile_errors: PercentileErrors | None = None
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Distinct latencies in whole microseconds, ascending, with their counts."""

    value_us: tuple[int, ...] = ()
    count: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        return sum(self.count)

    def mean_s(self) -> float | None:
        """Return seconds; None if it is empty."""
        total = sum(value * times for value, times in zip(self.value_us, self.count, strict=True))
        return total / self.n / 1e6 if self.n else None

    def deviation_s(self) -> float | None:
        """Return the standard deviation of the sample in seconds; None below two requests."""
        if self.n < 2:
            return None
        mean_us = (self.mean_s() or 0.0) * 1e6
        squares = sum(
            times * (value - mean_us) ** 2
            for value, times in zip(self.value_us, self.count, strict=True)
        )
        return math.sqrt(squares / (self.n - 1)) / 1e6

    def percentile_s(self, percentile: float) -> float | None:
        """Return the nearest rank, ⌈percentile/100 · n⌉, in seconds.

        It is None unless at least 10 requests lie beyond it: n(1 − percentile/100) ≥ 10.
        """
        n = self.n
        if not is_supported(percentile, n):
            return None
        left = max(1, math.ceil(round(percentile * n / 100, 6)))
        for value, times in zip(self.value_us, self.count, strict=True):
            left -= times
            if left <= 0:
                return value / 1e6
        return None


class Level(StrEnum):
    VALID = "valid"
    SUSPECT = "suspect"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """`code` is for programs, `message` for users; `level` is the validity that it alone causes."""

    code: str
    level: Level
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The validity by the worst reason; valid without any."""

    reasons: tuple[Reason, ...] = ()

    @property
    def level(self) -> Level:
        levels = {reason.level for reason in self.reasons}
        return next(
            (level for level in (Level.INVALID, Level.SUSPECT) if level in levels), Level.VALID
        )

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(reason.code for reason in self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFacts:
    """The load that the tool was actually started with, read from its arguments."""

    model: Model
    connections: int
    streams: int = 1
    tool_cpus: int
    rate: float | None
    duration_s: float | None
    requests: int | None
    warmup_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReading:
    """The canonical result of one trial.

    `readings`: metric key → value in the unit of `metrics`; unknown values are absent. `ok` (a good
    status of the load) and `other` (any other status) are latencies after the warm-up. `by_status`,
    `errors` (by class) and `truncated` (unfinished at the end of the load, not an error) count the
    whole load with its warm-up, because a tool reports no times of errors. None is unknown.
    `error_texts`: class → texts of the tool. `protocol`: the protocol that was used, as far as it
    was observed. `planned`: requests due in the window of an open load; `delivered`: the share of
    them with a good response.
    """

    tool: str
    tool_version: str | None
    load: LoadFacts
    window_start_s: float
    window_end_s: float | None
    readings: Mapping[str, float]
    ok: Distribution
    other: Distribution
    by_status: Mapping[int, int] | None
    errors: Mapping[str, int] | None
    error_texts: Mapping[str, Sequence[str]]
    truncated: int
    protocol: str | None = None
    planned: float | None
    delivered: float | None
    slices: Sequence[Mapping[str, float | None]]
    validity: Validity
    notes: tuple[str, ...] = field(default=())
