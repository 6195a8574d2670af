"""Schemas of the agent's answers. A host is not trusted: other answers are rejected."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from agents.hostagent.commands.status import LOG_BYTES

_Count = Annotated[int, Field(ge=0, lt=2**62)]
#: Seconds since 1970; the limit is that of valid dates.
_Instant = Annotated[float, Field(ge=0, le=2.5e11)]
_Seconds = Annotated[float, Field(ge=0, le=1e9)]
_Uuid = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F-]{32,36}$")]
_Positive = Annotated[float, Field(gt=0, lt=2**62)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class Program(_Form):
    path: str | None = None
    version: str | None = None
    sha256: str | None = None
    features: list[str] = []


_Programs = dict[str, Program | None]


_Cpu = Annotated[int, Field(ge=0, lt=2**14)]
_Cpus = Annotated[list[_Cpu], Field(max_length=2**12)]
_Short = Annotated[str, StringConstraints(max_length=200)]


class Core(BaseModel):
    """A core of agents/hostagent/platform/topology.py."""

    model_config = ConfigDict(strict=True, extra="forbid")

    cpus: Annotated[list[_Cpu], Field(max_length=16)]
    others: Annotated[list[_Cpu], Field(max_length=16)]
    package: _Cpu
    node: _Cpu
    kind: Annotated[str, StringConstraints(max_length=40)]
    clock: _Cpu | None


class Topology(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    cores: Annotated[list[Core], Field(max_length=2**11)]
    kinds: Annotated[list[_Short], Field(max_length=16)]
    offline: _Cpus
    isolated: _Cpus
    no_siblings: _Short
    no_pinning: _Short


class Facts(_Form):
    """The facts that Pitwall computes with; others are only displayed."""

    hostname: str | None = None
    system: str | None = None
    machine: str | None = None
    python: str | None = None
    python_path: str | None = None
    cpu_model: str | None = None
    cores: _Positive | None = None
    threads: Annotated[int, Field(gt=0, lt=2**16)] | None = None
    memory_bytes: _Positive | None = None
    topology: Topology | None = None
    limits_mechanism: str | None = None
    limits_available: list[str] | None = None
    limits_problem: Annotated[str, Field(max_length=1000)] | None = None
    limits_open_files: _Positive | None = None
    local_ports: _Positive | None = None
    work_dir_noexec: bool | None = None
    tuning_available: list[str] | None = None
    network_available: list[str] | None = None
    network_problem: Annotated[str, Field(max_length=1000)] | None = None
    static: dict[str, Any] | None = None
    tools: _Programs | None = None
    languages: _Programs | None = None
    programs: _Programs | None = None


class Reservation(_Form):
    left_s: Annotated[float, Field(gt=0, le=1e9)]
    by: Annotated[str, StringConstraints(max_length=200)]
    reason: Annotated[str, StringConstraints(max_length=200)]


class HostFacts(_Form):
    facts: Facts
    reservation: Reservation | None = None


class Ready(HostFacts):
    commits: dict[str, bool]
    present: dict[str, bool]


class Stopped(_Form):
    unkillable: Annotated[str, StringConstraints(max_length=1000)] = ""


class IdleCheck(_Form):
    interference: dict[str, Any]


class Outlived(_Form):
    alive: bool


class Present(_Form):
    present: dict[str, bool]


class Log(_Form):
    offset: _Count
    text: Annotated[str, StringConstraints(max_length=LOG_BYTES)]


class ForeignProcess(_Form):
    name: str
    cpu_s: _Seconds


class Event(_Form):
    """`t`: the time. The other fields depend on the kind of event (`intake.py`)."""

    t: _Instant
    event: str
    trial: _Uuid | None = None
    build: str | None = None
    commit: str | None = None
    phase: str | None = None
    port: Annotated[int, Field(gt=0, lt=65_536)] | None = None
    quiet_s: _Seconds | None = None
    host: str | None = None
    busy_share: Annotated[float, Field(ge=0, le=10)] | None = None
    foreign: Annotated[list[ForeignProcess], Field(max_length=10)] | None = None
    seconds: _Seconds | None = None


class Status(_Form):
    alive: bool
    started: bool
    now: _Instant
    offset: _Count
    dropped: _Count
    beat_age_s: _Seconds | None = None
    idle_s: _Seconds | None = None
    events: list[Event]


def describe_problem(form: type[BaseModel], answer: Mapping[str, Any]) -> str:
    """Return the first problem of an answer; empty if it is valid."""
    try:
        form.model_validate(answer)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            return "nested too deeply"
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:300]
    return ""
