"""What every load tool is told and what every load tool comes back with, whatever its name.

Times are seconds, latencies in distributions whole microseconds. Unknown is None or absent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from orchestrator.core.errors import PitwallError

Model = Literal["closed", "open"]
Protocol = Literal["h1", "h2", "h3", "grpc"]

#: Requests that must lie beyond a percentile before it is reported.
SUPPORTING_REQUESTS = 10


def is_supported(percentile: float, n: int) -> bool:
    """Whether n requests can carry a percentile (0 to 100); the rule of `stats.summary`."""
    # The hair of tolerance: 100 − 99.9 is a little under 0.1 in floating point.
    return n * (100 - percentile) >= 100 * SUPPORTING_REQUESTS - 1e-6


class ToolOutputError(PitwallError):
    """What a load tool left behind cannot be read; the message says which part and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """One load, for any tool. Either `duration_s` or `requests` says when it ends.

    Closed: each connection sends its next request when the last is answered. Open: requests are
    due at `rate` a second, and latency counts from when they were due. `compression` is what the
    client accepts; None asks for none. `expected_rate` is a guess of a closed loop's rate; it only
    bounds the number of rows and the time.
    """

    path: str
    connections: int
    model: Model = "closed"
    rate: float | None = None
    duration_s: float | None = None
    requests: int | None = None
    warmup_s: float = 0.0
    scheme: Literal["http", "https"] = "http"
    protocol: Protocol = "h1"
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    request_timeout_s: float = 10.0
    connect_timeout_s: float = 5.0
    keepalive: bool = True
    compression: tuple[str, ...] | None = None
    expected_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One start of the tool. `argv` holds the agent's words {tool} {out} {rows} {port}.

    Rows that start before `warmup_s` are not counted (0 where the warm-up is a start of its own).
    """

    argv: tuple[str, ...]
    kind: Literal["warmup", "measure"]
    wall_limit_s: float
    warmup_s: float = 0.0


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
    whole load, warm-up included, because a tool gives errors no time. `error_texts`: class → what
    the tool said. `planned`: requests due in the window of an open load, `delivered` the share of
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
    by_status: Mapping[int, int]
    errors: Mapping[str, int]
    error_texts: Mapping[str, Sequence[str]]
    truncated: int
    planned: float | None
    delivered: float | None
    slices: Sequence[Mapping[str, float | None]]
    validity: Validity
    notes: tuple[str, ...] = field(default=())
