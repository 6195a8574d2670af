"""Services of a definition: what runs beside the server under test. No Django."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from orchestrator.benchmarks.fields import Command, Environment, HttpStatus, Port, Strict
from orchestrator.benchmarks.limits import Limits

MAX_SERVICES = 20
MAX_COUNT = 32

Role = Literal["target", "generator", "backend"]


class Process(Strict):
    """How a process is started, an argument at a time, never by a shell; `port` if it is fixed."""

    start: Command
    env: Environment = {}
    port: Port | None = None

    def uses(self, word: str) -> bool:
        """Whether the command or the environment names `{word}`."""
        return any(f"{{{word}}}" in text for text in [*(self.start or ()), *self.env.values()])


class ServiceReady(Strict):
    """What shows that a service serves; without a path, a TCP connection is enough."""

    path: Annotated[str, Field(pattern=r"^/", max_length=4096)] | None = None
    status: HttpStatus = 200
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30

    @model_validator(mode="after")
    def _status_needs_a_path(self) -> "ServiceReady":
        if self.path is None and self.status != 200:
            raise ValueError("a status needs a request: give a path too")
        return self


class Service(Process):
    """`count` processes of one command, on the host that plays `role`.

    They are started anew for each trial, and ready before the services after them and the server
    are started.
    """

    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    role: Role = "backend"
    ready: ServiceReady = ServiceReady()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _ports_are_possible(self) -> "Service":
        if self.port is not None and self.count > 1:
            raise ValueError(
                f"port {self.port} can be had by one process only; leave port out, so that each "
                f"of the {self.count} is given its own as {{port}}"
            )
        if self.port is None and not self.uses("port"):
            raise ValueError("it does not know where to listen: use {port} in start or env")
        return self
