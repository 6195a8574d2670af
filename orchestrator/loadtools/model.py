"""What every load tool is told and what every load tool comes back with, whatever its name.

Times are seconds, latencies in distributions whole microseconds. Unknown is None or absent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from orchestrator.core.errors import PitwallError

Model = Literal["closed", "open"]
Protocol = Literal["h1", "h2", "h3", "grpc"]

#: The field of a definition, and what is wrong with it.
Problem = tuple[str, str]

#: Requests that must lie beyond a percentile before it is reported.
SUPPORTING_REQUESTS = 10


def is_supported(percentile: float, n: int) -> bool:
    """Whether n requests can carry a percentile (0 to 100); the rule of `stats.summary`."""
    # The hair of tolerance: 100 − 99.9 is a little under 0.1 in floating point.
    return n * (100 - percentile) >= 100 * SUPPORTING_REQUESTS - 1e-6


#: What reading a report, rows or a result raises that is garbage: each becomes a ToolOutputError.
GARBAGE = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError,
    StopIteration,
)  # fmt: skip


class ToolOutputError(PitwallError):
    """What a load tool left behind cannot be read; the message says which part and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcCall:
    """`method` is `package.Service/Method`, `proto` a file in the built tree.

    Without one the server is asked for it (reflection). `data` is one message, or several for a
    stream of requests.
    """

    method: str
    proto: str | None = None
    data: Mapping[str, Any] | Sequence[Mapping[str, Any]] = field(default_factory=dict)
    import_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """One load, for any tool. Either `duration_s` or `requests` says when it ends.

    Closed: each stream of each connection sends its next request when the last is answered. Open:
    requests are due at `rate` a second, and latency counts from when they were due; with
    `searching` the agent chooses the rate of each probe, and `rate` is the highest. `random_path`
    is a regular expression that each request's path is made from, instead of `path`. h2 without
    TLS is prior knowledge. `compression` is what the client accepts; None asks for none.
    `response_bytes`: least and most body bytes of a good answer, as they come. `expected_rate` is
    a guess of a closed loop's rate; it only bounds the number of rows and the time. `command` and
    `parameters` are those of the tool `script`. `client_measured`: the tool is what is of interest.
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
    keepalive: bool = True
    compression: tuple[str, ...] | None = None
    response_bytes: tuple[int, int] | None = None
    expected_rate: float | None = None
    client_measured: bool = False

    @property
    def scheme(self) -> Literal["http", "https"]:
        return "https" if self.tls else "http"

    @property
    def rate_text(self) -> str:
        """The rate for an argument: a number, or the agent's word for that of a probe."""
        return "{probe_rate}" if self.searching else f"{self.rate:.15g}"

    @property
    def at_once(self) -> int:
        """Requests that a closed loop keeps going."""
        return self.connections * self.streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One start of the tool. `argv` holds the agent's words, such as {tool} {out} {rows} {port}.

    Rows that start before `warmup_s` are not counted (0 where the warm-up is a start of its own).
    """

    argv: tuple[str, ...]
    kind: Literal["primer", "warmup", "measure"]
    wall_limit_s: float
    warmup_s: float = 0.0
    env: Mapping[str, str] = field(default_factory=dict)


Knowledge = Literal["yes", "no", "partly"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a tool can do and tell: the sheet that refuses definitions and that people read.

    `protocols` are pairs of protocol and TLS. `streams`: several requests at once on a connection.
    `open_loop`: sends on time whatever the answers do, latency from the intended time. `warmup`:
    `inside` the measured load (by the times of its rows) or a start of its own (`apart`).
    `distribution`: `rows` (each request, with its time), `buckets` (the whole distribution without
    times). `caveats` are what a reader of its numbers must know.
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
    errors: Knowledge = "yes"
    bytes_in: Knowledge = "yes"
    bytes_out: Knowledge = "no"
    spoken_protocol: Knowledge = "no"
    verifies_certificate: bool = True
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Distinct latencies in whole microseconds, ascending, and how often each was seen."""

    value_us: tuple[int, ...] = ()
    count: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        return sum(self.count)

    def mean_s(self) -> float | None:
        """Seconds; None when empty."""
        total = sum(value * times for value, times in zip(self.value_us, self.count, strict=True))
        return total / self.n / 1e6 if self.n else None

    def deviation_s(self) -> float | None:
        """Standard deviation of the sample, seconds; None under two requests."""
        if self.n < 2:
            return None
        mean_us = (self.mean_s() or 0.0) * 1e6
        squares = sum(
            times * (value - mean_us) ** 2
            for value, times in zip(self.value_us, self.count, strict=True)
        )
        return math.sqrt(squares / (self.n - 1)) / 1e6

    def percentile_s(self, percentile: float) -> float | None:
        """Nearest rank, ⌈percentile/100 · n⌉, in seconds; None without enough requests beyond.

        Enough is n(1 − percentile/100) ≥ 10.
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
    """`code` for programs, `message` for people; `level` is what this alone makes of the trial."""

    code: str
    level: Level
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The worst of its reasons; valid without any."""

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
    """The load as the tool was really asked for it, read back from its argv."""

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

    `readings`: metric key → value in the unit that `metrics` names; what is unknown is absent.
    `ok` (2xx, 3xx) and `other` (any other status) are latencies after the warm-up. `by_status`,
    `errors` (by class) and `truncated` (cut off by the end of the load, not an error) count the
    whole load, warm-up included, because a tool gives errors no time; None is unknown.
    `error_texts`: class → what the tool said. `protocol`: what was really spoken, as far as anybody
    saw it. `planned`: requests due in the window of an open load, `delivered` the share of
    them that was answered well.
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
