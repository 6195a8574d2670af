"""The load of a definition, and the expected responses. No Django."""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from agents.hostagent.protocol import MOST_PASSES
from orchestrator.benchmarks.fields import Command, Environment, HttpStatus, Scalar, Strict
from orchestrator.benchmarks.objective import count_needed_requests
from orchestrator.benchmarks.objective import parse as parse_objective
from orchestrator.loadtools.model import Protocol
from orchestrator.loadtools.registry import TOOLS

#: The name of an axis in braces, whose value is used: `"{connections}"`.
Reference = Annotated[str, Field(pattern=r"^\{[a-z][a-z0-9_]*\}$")]
#: Fields of the load that may be references.
REFERENCES = (
    "tool", "protocol", "tls", "compression", "connections", "streams", "rate", "duration_s",
    "requests", "keepalive", "body_bytes",
)  # fmt: skip
#: Texts of the load with placeholders of axes.
TEXTS = ("path", "random_path", "body")
#: The path of the request if the load has none.
ANY_PATH = "/"

HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Path = Annotated[str, Field(pattern=r"^/", max_length=4096)]
Body = Annotated[str, Field(max_length=65536)]
BodyBytes = Annotated[int, Field(ge=1, le=65536)]
Rate = Annotated[float, Field(gt=0, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Requests = Annotated[int, Field(ge=1, le=5_000_000)]
Connections = Annotated[int, Field(ge=1, le=10_000)]
Streams = Annotated[int, Field(ge=1, le=1_000)]


def _parse_codings(value: object) -> object:
    """Split `"gzip, br"` into a list; `none` and `identity` request no coding."""
    if not isinstance(value, str) or value.startswith("{"):
        return value
    names = [name.strip() for name in value.split(",")]
    return [name for name in names if name not in ("", "none", "identity")]


Compression = Annotated[list[str], Field(max_length=10)]


class Range(Strict):
    """Both ends are included."""

    min: Annotated[int, Field(ge=0)]
    max: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _ordered(self) -> "Range":
        if self.min > self.max:
            raise ValueError(f"min {self.min} is more than max {self.max}")
        return self


class Grpc(Strict):
    """The call; without `proto` (a file of the built tree), server reflection describes it."""

    call: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*/[A-Za-z_]\w*$")]
    proto: Annotated[str, Field(max_length=400)] | None = None
    import_paths: Annotated[list[str], Field(max_length=10)] = []
    data: dict[str, Any] | list[dict[str, Any]] = {}


class Step(Strict):
    """One of several loads; missing fields have the values of the load itself."""

    rate: Rate | None = None
    connections: Connections | None = None
    streams: Streams | None = None
    duration_s: Seconds | None = None
    requests: Requests | None = None
    warmup_s: Annotated[float, Field(ge=0, le=600)] = 1


class Search(Strict):
    """Search of the highest rate that meets the objective, with probes from `low` to `high`."""

    objective: Annotated[str, Field(min_length=1, max_length=500)]
    low: Rate = 100
    high: Rate = 100_000
    probe_s: Seconds = 10
    max_probes: Annotated[int, Field(ge=8, le=60)] = 32
    confirmations: Annotated[int, Field(ge=1, le=20)] = 5

    @field_validator("objective")
    @classmethod
    def _can_be_read(cls, text: str) -> str:
        parse_objective(text)
        return text

    @model_validator(mode="after")
    def _ordered(self) -> "Search":
        if self.low >= self.high:
            raise ValueError(f"low {self.low:g} must be less than high {self.high:g}")
        return self

    @model_validator(mode="after")
    def _knows_percentiles(self) -> "Search":
        needed = count_needed_requests(parse_objective(self.objective))
        longest_s = MOST_PASSES * self.probe_s
        if self.low * longest_s < needed:
            raise ValueError(
                f"the objective needs {needed:,} requests in a probe, and low {self.low:g} gives "
                f"{self.low * longest_s:,.0f} in {MOST_PASSES} passes of {self.probe_s:g} s: set "
                f"low to {math.ceil(needed / longest_s)} or more, or probe_s to "
                f"{math.ceil(needed / self.low / MOST_PASSES)} or more"
            )
        return self


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression of Python: {error}") from error
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_pattern)]


class Expect(Strict):
    """The good responses of a load; all others are errors.

    `volatile` matches all parts of the body that may vary; None does not say what varies.
    """

    status: HttpStatus | Annotated[list[HttpStatus], Field(min_length=1, max_length=20)] = 200
    volatile: Annotated[list[Pattern], Field(max_length=10)] | None = None

    @property
    def statuses(self) -> tuple[int, ...]:
        given = self.status if isinstance(self.status, list) else [self.status]
        return tuple(sorted(set(given)))

    @model_serializer(mode="wrap")
    def _canonical(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out an unused `volatile`, so that older definitions keep their digests."""
        data: dict[str, Any] = serialize(self)
        return {name: value for name, value in data.items() if value is not None}


class Load(Strict):
    """The load on the subject."""

    tool: str = "oha"
    protocol: Protocol | Reference = "h1"
    tls: bool | Reference = False
    path: Path = ANY_PATH
    random_path: Path | None = None
    method: Method = "GET"
    headers: dict[HeaderName, str] = {}
    body: Body | None = None
    body_bytes: BodyBytes | Reference | None = None
    compression: Annotated[Compression | Reference | None, BeforeValidator(_parse_codings)] = None
    grpc: Grpc | None = None
    command: Command | None = None
    env: Environment = {}
    connections: Connections | Reference = 10
    streams: Streams | Reference = 1
    rate: Rate | Reference | None = None
    duration_s: Seconds | Reference | None = None
    requests: Requests | Reference | None = None
    steps: Annotated[list[Step], Field(min_length=2, max_length=50)] | None = None
    search: Search | None = None
    warmup_s: Annotated[float, Field(ge=0, le=600)] = 10
    primer_s: Annotated[float, Field(ge=0, le=60)] = 0
    request_timeout_s: Annotated[float, Field(gt=0, le=600)] = 10
    connect_timeout_s: Annotated[float, Field(gt=0, le=600)] = 5
    quic_idle_timeout_s: Annotated[float, Field(gt=0, le=600)] = 30
    keepalive: bool | Reference = True
    response_bytes: Annotated[int, Field(ge=0)] | Range | None = None
    expect: Expect | None = None

    @field_validator("tool")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in TOOLS and not (name.startswith("{") and name.endswith("}")):
            raise ValueError(f"expected one of {', '.join(TOOLS)}, got {name!r}")
        return name

    @model_validator(mode="after")
    def _one_stop(self) -> "Load":
        if self.search is not None:
            self._nothing_beside_search()
        elif self.steps is not None:
            self._steps_end()
        elif (self.duration_s is None) == (self.requests is None):
            raise ValueError("give either duration_s or requests, not both")
        return self

    @model_validator(mode="after")
    def _one_command(self) -> "Load":
        if self.tool == "script" and self.command is None:
            raise ValueError("the tool script needs a command")
        if self.command is not None and self.tool in TOOLS and self.tool != "script":
            raise ValueError(f"a command needs the tool script, but the tool is {self.tool}")
        if self.env and self.command is None:
            raise ValueError(
                "env: only a script has environment variables: set tool: script and a command, or "
                "move them to the env of the subject or of a service"
            )
        return self

    @model_validator(mode="after")
    def _one_kind_of_status(self) -> "Load":
        if self.expect is not None and (self.protocol == "grpc" or self.tool == "script"):
            what = "a gRPC call" if self.protocol == "grpc" else "a script"
            raise ValueError(f"expect: {what} reports itself what succeeded: leave expect out")
        return self

    @model_validator(mode="after")
    def _one_body(self) -> "Load":
        if self.body is not None and self.body_bytes is not None:
            raise ValueError("give either body or body_bytes, not both")
        return self

    def _nothing_beside_search(self) -> None:
        for name in ("rate", "duration_s", "requests", "steps"):
            if getattr(self, name) is not None:
                raise ValueError(f"a search chooses the rate and has probe_s: leave {name} out")

    def _steps_end(self) -> None:
        for place, step in enumerate(self.steps or ()):
            given = [
                getattr(step, name) if getattr(step, name) is not None else getattr(self, name)
                for name in ("duration_s", "requests")
            ]
            own = (step.duration_s is not None) + (step.requests is not None)
            if own > 1 or (own == 0 and (given[0] is None) == (given[1] is None)):
                raise ValueError(f"steps[{place}]: give either duration_s or requests")

    @model_serializer(mode="wrap")
    def _canonical(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out unused fields, so that older definitions keep their digests."""
        data = serialize(self)
        for name in _LATER:
            if data[name] == Load.model_fields[name].default:
                del data[name]
        return data


#: Fields that were added after the first definitions were stored.
_LATER = (
    "protocol", "tls", "random_path", "compression", "grpc", "command", "streams", "steps",
    "search", "primer_s", "connect_timeout_s", "quic_idle_timeout_s", "response_bytes",
    "body_bytes", "expect", "env",
)  # fmt: skip


class Check(Strict):
    """A request before and after the load with its expected response; null is not checked."""

    path: Path = "/"
    method: Method = "GET"
    headers: dict[HeaderName, str] = {}
    body: Body | None = None
    status: HttpStatus | None = 200
    response_headers: dict[HeaderName, str] = {}
    text: Body | None = None
    length: Annotated[int, Field(ge=0)] | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    matches: Annotated[str, Field(max_length=4096)] | None = None
    encoding: Annotated[str, Field(max_length=40)] | None = None
    message_base64: Annotated[str, Field(max_length=65536)] | None = None
    grpc_status: Annotated[int, Field(ge=0, le=16)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 10

    @property
    def response(self) -> dict[str, Scalar] | None:
        """The one check of the response body."""
        given = {
            name: getattr(self, name)
            for name in ("text", "length", "sha256", "matches")
            if getattr(self, name) is not None
        }
        return given or None

    @model_validator(mode="after")
    def _one_response(self) -> "Check":
        if len(self.response or {}) > 1:
            raise ValueError("give one of text, length, sha256 and matches")
        if self.body is not None and self.message_base64 is not None:
            raise ValueError("body is for HTTP, message_base64 for gRPC: give one of them")
        return self
