"""A plan's values: what the orchestrator wants of this step, checked (planfile.py reads them)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional, Union

from .limits import Limits

LOOPBACK = "127.0.0.1"
#: The name of the server among a trial's parts; a service's process is `service:<name>:<n>`.
SERVER = "server"


@dataclass(frozen=True)
class Build:
    """`archive` or `repository` is set: where the commit's source comes from."""

    commit: str
    archive: Optional[str]
    repository: Optional[str]
    tree: str
    on: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    env: Mapping[str, str]
    timeout_s: float


@dataclass(frozen=True)
class Ready:
    """The answer that shows that a part serves; `path` None: a TCP connection is enough."""

    path: Optional[str]
    status: int
    body: Optional[str]
    timeout_s: float


@dataclass(frozen=True)
class Server:
    on: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    limits: Limits
    port: Optional[int]


@dataclass(frozen=True)
class Service:
    name: str
    on: str
    count: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    limits: Limits
    port: Optional[int]
    ready: Ready

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(f"service:{self.name}:{n}" for n in range(1, self.count + 1))


@dataclass(frozen=True)
class Load:
    argv: tuple[str, ...]
    kind: str
    wall_limit_s: float


@dataclass(frozen=True)
class Tool:
    name: str
    path: str
    limits: Limits


@dataclass(frozen=True)
class Trial:
    id: str
    tree: str
    commit: str
    server: Server
    ready: Ready
    services: tuple[Service, ...]
    loads: tuple[Load, ...]
    tool: Tool
    warmup_s: float
    cooldown_s: float
    expected_s: float

    @property
    def measure(self) -> Load:
        return next(load for load in self.loads if load.kind == "measure")

    @property
    def warmups(self) -> tuple[Load, ...]:
        return tuple(load for load in self.loads if load.kind == "warmup")

    def program(self, part: str) -> Optional[Union[Server, Service]]:
        """What `part` is one process of; None where the trial has no such part."""
        if part == SERVER:
            return self.server
        return next((service for service in self.services if part in service.parts), None)


@dataclass(frozen=True)
class Host:
    """`port`: where a follower listens for its lead; None = not known, or it is the lead."""

    address: str
    port: Optional[int]


@dataclass(frozen=True)
class Plan:
    job: str
    step: str
    silence_s: float
    me: str
    lead: str
    secret: Optional[str]
    hosts: Mapping[str, Host]
    tuning: Mapping[str, str]
    builds: tuple[Build, ...]
    trials: tuple[Trial, ...]

    @property
    def is_lead(self) -> bool:
        return self.me == self.lead

    @property
    def followers(self) -> tuple[str, ...]:
        return tuple(label for label in self.hosts if label != self.lead)

    def address(self, label: str) -> str:
        """Where the parts of that host listen, and are reached from any host of the job."""
        return self.hosts[label].address if len(self.hosts) > 1 else LOOPBACK

    def trial(self, name: str) -> Optional[Trial]:
        return next((trial for trial in self.trials if trial.id == name), None)
